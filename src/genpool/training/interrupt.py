"""Ctrl-C, and the polite kill, stop a run between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def catch_interrupts() -> Iterator[Callable[[], bool]]:
    """Gives a function that tells whether a signal came. A second Ctrl-C ends at once."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may set handlers
        return
    came = False
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def notice(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)

    for number in before:
        signal.signal(number, notice)
    try:
        yield lambda: came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)

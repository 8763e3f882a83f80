"""Ctrl-C and SIGTERM stop a run between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def catch_interrupts() -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether SIGINT or SIGTERM has arrived.

    The second signal is handled as before, so that a second Ctrl-C ends the program at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may set handlers
        return
    arrived = False
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def notice(number: int, frame: FrameType | None) -> None:
        nonlocal arrived
        arrived = True
        signal.signal(number, previous[signal.Signals(number)] or signal.SIG_DFL)

    for number in previous:
        signal.signal(number, notice)
    try:
        yield lambda: arrived
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler or signal.SIG_DFL)

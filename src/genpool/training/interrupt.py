"""Ctrl-C and SIGTERM stop a run between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

#: what ends a run that can be continued
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def catch_interrupts(
    signals: Sequence[signal.Signals] = STOP_SIGNALS,
) -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether one of the signals has arrived.

    The second signal is handled as before, so that a second Ctrl-C ends the program at once.

    Args:
        signals: the signals. Default: SIGINT and SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may set handlers
        return
    arrived = False
    previous = {number: signal.getsignal(number) for number in signals}

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

"""Ctrl-C and SIGTERM end a long command in words."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from genpool.errors import Stopped


@contextmanager
def stopping_in_words(otherwise: str) -> Iterator[None]:
    """Turns Ctrl-C and SIGTERM into an error that says what is kept.

    Args:
        otherwise: the message where the interrupt has none.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # Only the main thread may set a handler.
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, interrupt) if in_main_thread else None
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Stopped(str(stop) or otherwise) from None
    finally:
        if in_main_thread:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)

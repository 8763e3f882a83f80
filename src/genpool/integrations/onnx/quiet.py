"""Silence for the internal messages of PyTorch's exporter and onnxruntime's quantizer."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Hides warnings and log messages inside the block; errors are raised as ever."""
    disabled, handlers = logging.root.manager.disable, logging.root.handlers[:]
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        # `logging.warning` adds a handler to a program that has none, and it would stay.
        logging.root.handlers[:] = handlers

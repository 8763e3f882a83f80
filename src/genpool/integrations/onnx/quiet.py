"""Silence for the internal messages of PyTorch's exporter and onnxruntime's quantizer."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def quiet() -> Iterator[None]:
    """Hides warnings, log messages and what is printed inside the block; errors are raised."""
    disabled, handlers = logging.root.manager.disable, logging.root.handlers[:]
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # onnxscript 0.6 prints
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        # `logging.warning` adds a handler to a program that has none, and it would stay.
        logging.root.handlers[:] = handlers

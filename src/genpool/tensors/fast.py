"""One switch for all fast paths, to compare them with a direct implementation of the equations.

    with fast_paths(False):
        ...                      # plain autograd over padded tensors, nothing fused

The environment variable GENPOOL_FAST=0 turns them off for a whole program. Outputs and gradients
are the same either way, up to rounding; only time and memory differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_enabled = os.environ.get("GENPOOL_FAST", "1") != "0"


def fast() -> bool:
    """Returns whether fast paths are on."""
    return _enabled


@contextmanager
def fast_paths(enabled: bool) -> Iterator[None]:
    """Turns fast paths on or off inside the block, for all threads."""
    global _enabled
    before, _enabled = _enabled, enabled
    try:
        yield
    finally:
        _enabled = before

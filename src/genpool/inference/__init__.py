"""Many sentences fast: batching, the quick encoder with its 8-bit form, worker processes."""

from genpool.inference.quick_encoder import QuickEncoder

__all__ = ["QuickEncoder"]

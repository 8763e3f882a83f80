"""Many sentences fast: batching, the quick encoder with its 8-bit form, worker processes."""

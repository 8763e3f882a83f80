"""The earlier name of `genpool.inference.quick_encoder`."""

from genpool.inference.quick_encoder import QuickEncoder as QuickEncoder

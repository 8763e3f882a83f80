"""The earlier name of `genpool.inference`."""

from genpool.inference import QuickEncoder as QuickEncoder

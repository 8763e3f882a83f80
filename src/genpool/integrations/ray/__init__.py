"""Ray: bulk encoding on a cluster, and the encoder as a class for Ray Data (extra `ray`)."""

from genpool.integrations.ray.batches import TextEncoder
from genpool.integrations.ray.engine import RayEngine

__all__ = ["RayEngine", "TextEncoder"]

"""Distillation: a small, fast encoder is trained to return the vectors of a large one."""

from genpool.distillation.run import distil
from genpool.distillation.settings import DistillationSettings, read_distillation

__all__ = ["DistillationSettings", "distil", "read_distillation"]

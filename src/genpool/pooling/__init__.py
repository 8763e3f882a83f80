"""Token states and a mask in, one sentence vector out. The states may come from any model.

>>> from genpool.pooling import GeneralizedPooling
>>> vector, heads, weights = GeneralizedPooling(768, heads=5)(states, mask)
"""

from genpool import registry
from genpool.pooling import penalties
from genpool.pooling.base import AttentionPooling, Pooled, Pooling
from genpool.pooling.baselines import (
    GatedPooling,
    InnerAttentionPooling,
    LastPooling,
    MaxPooling,
    MeanMaxPooling,
    MeanPooling,
    ScalarAttentionPooling,
    SourceToTokenPooling,
)
from genpool.pooling.generalized import GeneralizedPooling

_CLASSES: dict[str, type[Pooling]] = {
    "generalized": GeneralizedPooling,
    "scalar": ScalarAttentionPooling,
    "inner": InnerAttentionPooling,
    "gated": GatedPooling,
    "source-to-token": SourceToTokenPooling,
    "max": MaxPooling,
    "mean": MeanPooling,
    "last": LastPooling,
    "mean-max": MeanMaxPooling,
}
#: every pooling by its name in settings and saved folders
POOLINGS: registry.Registry[Pooling] = registry.Registry("pooling", Pooling, _CLASSES)
register = POOLINGS.register

__all__ = [
    "POOLINGS",
    "AttentionPooling",
    "GatedPooling",
    "GeneralizedPooling",
    "InnerAttentionPooling",
    "LastPooling",
    "MaxPooling",
    "MeanMaxPooling",
    "MeanPooling",
    "Pooled",
    "Pooling",
    "ScalarAttentionPooling",
    "SourceToTokenPooling",
    "penalties",
    "register",
]

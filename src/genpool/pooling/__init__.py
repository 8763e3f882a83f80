"""Token states and a mask in, one sentence vector out. The states may come from any model.

>>> from genpool.pooling import GeneralizedPooling
>>> vector, heads, weights = GeneralizedPooling(768, heads=5)(states, mask)
"""

from genpool.pooling import penalties
from genpool.pooling.base import Pooled, Pooling
from genpool.pooling.gated import GatedPooling
from genpool.pooling.generalized import GeneralizedPooling
from genpool.pooling.inner import InnerAttentionPooling
from genpool.pooling.mean_max import MeanMaxPooling
from genpool.pooling.scalar import ScalarAttentionPooling
from genpool.pooling.simple import LastPooling, MaxPooling, MeanPooling
from genpool.pooling.source_to_token import SourceToTokenPooling

#: every pooling by its name in settings and saved folders; adding one takes one file and one line
POOLINGS: dict[str, type[Pooling]] = {
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

__all__ = [
    "POOLINGS",
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
]

"""From sentence vectors to labels."""

from genpool.classifier.features import pair_features
from genpool.classifier.mlp import MLP

__all__ = ["MLP", "pair_features"]

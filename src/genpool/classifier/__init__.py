"""From sentence vectors to labels."""

from genpool.classifier.mlp import MLP, pair_features
from genpool.classifier.temperature import fit_temperature

__all__ = ["MLP", "fit_temperature", "pair_features"]

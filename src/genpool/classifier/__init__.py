"""From sentence vectors to labels."""

from genpool.classifier.features import pair_features
from genpool.classifier.fit_methods import FitPairs, FitTexts
from genpool.classifier.mlp import MLP
from genpool.classifier.score_methods import ScoreMethods

__all__ = ["MLP", "FitPairs", "FitTexts", "ScoreMethods", "pair_features"]

"""From sentence vectors to labels."""

from genpool.classifier.calibration_methods import CalibrationMethods
from genpool.classifier.features import pair_features
from genpool.classifier.fit_methods import FitPairs, FitTexts
from genpool.classifier.mlp import MLP
from genpool.classifier.temperature import fit_temperature

__all__ = [
    "MLP",
    "CalibrationMethods",
    "FitPairs",
    "FitTexts",
    "fit_temperature",
    "pair_features",
]

"""Many sentences fast: batching, the quick encoder with its 8-bit form, workers; explanations."""

from genpool.inference.explanation import Explanation, LabelExplanation, PairExplanation
from genpool.inference.quick import QuickEncoder

__all__ = ["Explanation", "LabelExplanation", "PairExplanation", "QuickEncoder"]

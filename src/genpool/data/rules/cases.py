"""What a rule generates: one hypothesis, and a premise for each label."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from genpool.data.rules.changes import Dice
from genpool.data.rules.scenes import Scene

LABELS = ("entailment", "neutral", "contradiction")


class Case(NamedTuple):
    """One hypothesis and its premises; if one is None, the rule has to draw another case."""

    hypothesis: Scene
    entailment: Scene | None = None
    neutral: Scene | None = None
    contradiction: Scene | None = None


Rule = Callable[[Dice], Case]

"""Runs of a sweep that would train the same model again, because a penalty has no effect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from genpool.training.settings import RunSettings


def same_model_reason(
    settings: RunSettings, trained: RunSettings, metrics: Iterable[Mapping[str, Any]]
) -> str | None:
    """Returns why a run would end with the weights of one that is trained, bit for bit; or None.

    With every hinge inactive in every step the penalty and its gradient are exactly zero, so that
    neither its weight nor a threshold below all distances has any effect.

    Args:
        settings: Those of the run in question.
        trained: Those of the finished run.
        metrics: The lines of its metrics.jsonl, which cover all of its steps.
    """
    there, here = trained.penalty, settings.penalty
    if replace(settings, penalty=there) != trained:
        return None
    if replace(here, weight=there.weight, threshold=there.threshold) != there:
        return None
    if here.name == "none":
        return "penalty.name is none"
    # A weight of 0 leaves the term out: that is another computation, if only in its rounding.
    if not all(0 < penalty.weight < math.inf for penalty in (there, here)):
        return None
    lines = list(metrics)
    if not lines or any(line.get("penalty_active") != 0 for line in lines):
        return None
    closest = min(line.get("penalty_distance_min", -math.inf) for line in lines)
    if here.threshold > max(there.threshold, closest):
        return None
    return f"asleep at threshold {here.threshold:g}"

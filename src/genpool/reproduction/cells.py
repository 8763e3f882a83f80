"""A cell: one training run of a reproduction, that is a recipe with overrides and a seed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """One training run.

    Attributes:
        scale: "paper", "small" or "tiny".
        task: name of the task, such as "snli".
        system: name of the system, such as "max".
        recipe: the recipe that is trained.
        overrides: settings put over the recipe, as `section.key=value`.
        seed: seed of weights, order and dropout.
        penalty: what keeps the heads apart, such as "attention 0.01", or "none".
    """

    scale: str
    task: str
    system: str
    recipe: str
    overrides: tuple[str, ...]
    seed: int
    penalty: str = "none"

    @property
    def key(self) -> str:
        """Identifies the run: two cells of equal settings are one, whatever table asks for them."""
        settings = sorted(dict(override.split("=", 1) for override in self.overrides).items())
        content = [self.scale, self.task, self.recipe, settings, self.seed]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]

    @property
    def folder(self) -> str:
        """Name of the run's folder: readable, and unique by the key."""
        penalty = "" if self.penalty == "none" else "-" + self.penalty.replace(" ", "-")
        return f"{self.task}-{self.system}{penalty}-seed{self.seed}-{self.key}"

    def __str__(self) -> str:
        penalty = "" if self.penalty == "none" else f", penalty {self.penalty}"
        return f"{self.task}: {self.system}{penalty}, seed {self.seed}"

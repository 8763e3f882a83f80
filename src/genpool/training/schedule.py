"""When to lower the learning rate and when to stop."""

from __future__ import annotations

from dataclasses import dataclass

from genpool.training.settings import TrainingSettings


@dataclass
class Decision:
    """What follows from an evaluation.

    Attributes:
        is_best: The model is at least as good as the best so far.
        restore: Go back to the best weights.
        stop: End the training.
    """

    is_best: bool
    restore: bool = False
    stop: bool = False


@dataclass
class Schedule:
    """The state that decisions depend on; all of it is part of a checkpoint.

    "restore-halve" is the rule of the released program: when dev accuracy is below the best so far,
    restore the best weights and halve the learning rate (Adam's moments are kept); stop at the last
    halving. A tie counts as an improvement. "constant" keeps the rate and may stop by patience.
    """

    learning_rate: float
    best: float = -1.0
    halvings: int = 0
    worse_in_a_row: int = 0

    def after(self, accuracy: float, settings: TrainingSettings) -> Decision:
        """Returns the decision after an evaluation, and updates the state."""
        if accuracy >= self.best:
            self.best, self.worse_in_a_row = accuracy, 0
            return Decision(is_best=True)
        self.worse_in_a_row += 1
        if settings.schedule == "constant":
            patience = settings.patience
            return Decision(False, stop=patience is not None and self.worse_in_a_row >= patience)
        self.halvings += 1
        self.learning_rate /= 2
        return Decision(False, restore=True, stop=self.halvings >= settings.halvings)

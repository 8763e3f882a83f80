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
    "linear" does the same with a rate that depends on the step (`rate_at`), and takes scores within
    a standard error of the best for a tie: on a small dev set the highest of many is a lucky one,
    and later weights, at a lower rate, are better.
    """

    learning_rate: float
    best: float = -1.0
    halvings: int = 0
    worse_in_a_row: int = 0

    def rate_at(self, step: int, steps: int, settings: TrainingSettings) -> float:
        """Returns the learning rate of a step.

        Args:
            step: the number of the step, from 0.
            steps: the number of steps of the run, if it is not stopped earlier.
            settings: the schedule and its warm-up.
        """
        if settings.schedule != "linear":
            return self.learning_rate
        rising = max(1, round(settings.warmup * steps))
        falling = max(steps - rising, 1)
        return self.learning_rate * min((step + 1) / rising, max(steps - step, 1) / falling, 1.0)

    def after(
        self, score: float, settings: TrainingSettings, standard_error: float = 0.0
    ) -> Decision:
        """Returns the decision after an evaluation, and updates the state.

        Args:
            score: the accuracy on dev, or another value of which more is better.
            settings: the schedule.
            standard_error: of the score, for the linear schedule. Default: 0.
        """
        tolerance = standard_error if settings.schedule == "linear" else 0.0
        if score >= self.best - tolerance:
            self.best, self.worse_in_a_row = max(self.best, score), 0
            return Decision(is_best=True)
        self.worse_in_a_row += 1
        if settings.schedule != "restore-halve":
            patience = settings.patience
            return Decision(False, stop=patience is not None and self.worse_in_a_row >= patience)
        self.halvings += 1
        self.learning_rate /= 2
        return Decision(False, restore=True, stop=self.halvings >= settings.halvings)

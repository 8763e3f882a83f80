"""Scores from the probabilities of a classifier whose labels are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.errors import InputError

#: the note of a saved model that says what it was trained to predict, and its value for scores
TASK_NOTE, SCORE_TASK = "task", "score"


class ScoreMethods:
    """What a classifier that was trained with task="score" can do.

    Its labels are evenly spaced numbers; its score is their mean, weighted with the probabilities.
    """

    labels: tuple[str, ...]
    notes: dict[str, Any]

    @property
    def predicts_scores(self) -> bool:
        """Whether the model was trained with task="score"."""
        return self.notes.get(TASK_NOTE) == SCORE_TASK

    def predict_proba(
        self, examples: Sequence[Any], batch_size: int = 64, show_progress_bar: bool = False
    ) -> NDArray[np.float32]:
        """Returns the probabilities (examples, labels)."""
        raise NotImplementedError

    def predict_score(
        self, examples: Sequence[Any], batch_size: int = 64, show_progress_bar: bool = False
    ) -> NDArray[np.float32]:
        """Returns the score of each sentence or pair, of a model trained with task="score".

        Args:
            examples: sentences or pairs, as in `predict`.
            batch_size: examples per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar on standard error. Default: False.

        Returns:
            Scores (examples,), float32, within the range of the training scores.

        Raises:
            InputError: a label of the model is not a number, or as in `predict_proba`.

        Example:
            >>> model = PairClassifier.fit(pairs, scores, task="score")
            >>> model.predict_score([("A man sleeps.", "A person rests.")])
        """
        return self.scores_of(self.predict_proba(examples, batch_size, show_progress_bar))

    def scores_of(self, probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the scores (examples,) of the probabilities (examples, labels) of the model.

        Raises:
            InputError: a label of the model is not a number.
        """
        try:
            points = np.array([float(label) for label in self.labels], dtype=np.float32)
        except ValueError:
            raise InputError(
                f"the labels of this model are {', '.join(self.labels)}; expected numbers. Only a "
                'model that was trained with task="score" predicts scores.'
            ) from None
        scores: NDArray[np.float32] = probabilities @ points
        return scores

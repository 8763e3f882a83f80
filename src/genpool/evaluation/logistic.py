"""The classifier of the probes: logistic regression on standardised vectors, with C chosen."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genpool.errors import InputError, require_extra
from genpool.evaluation.tables import LabelledVectors
from genpool.evaluation.vectors import FloatArray

INNER_FOLDS = 5
MAX_ITERATIONS = 1000


@dataclass(frozen=True)
class Fit:
    """The chosen C, whether the last fit converged, and the labels predicted for the new rows."""

    c: float
    converged: bool
    predicted: list[str]


def fit_and_predict(
    train: LabelledVectors,
    vectors: FloatArray,
    dev: LabelledVectors | None,
    grid: Sequence[float],
    seed: int,
) -> Fit:
    """Chooses C from `grid`, fits on `train` alone, and predicts the labels of `vectors`."""
    values = sorted(grid)
    if not values or values[0] <= 0:
        raise InputError(f"the grid of C is {list(grid)}; expected positive numbers")
    if len(set(train.labels)) < 2:
        raise InputError(f"the training rows need at least 2 labels; {label_counts(train.labels)}")
    with require_extra("A transfer probe", "train"):
        from sklearn.exceptions import ConvergenceWarning

    c = values[0] if len(values) == 1 else choose_c(train, dev, values, seed)
    model = _pipeline(c)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(train.vectors, np.array(train.labels, dtype=object))
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return Fit(c, converged, [str(label) for label in model.predict(vectors)])


def choose_c(
    train: LabelledVectors, dev: LabelledVectors | None, values: list[float], seed: int
) -> float:
    """Returns the best of ascending values of C, on `dev` or by cross-validation in `train`."""
    with require_extra("A transfer probe", "train"):
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold

    vectors, labels = train.vectors, list(train.labels)
    if dev is None:
        folds = min(INNER_FOLDS, second_count(train.labels))
        if folds < 2:
            raise InputError(
                "to choose C without a dev set, 2 labels need 2 training rows each; "
                f"{label_counts(train.labels)}. Provide more rows, a dev set (command line: a "
                "folder with train, dev and test tables), or a grid of one C"
            )
        split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    else:
        vectors, labels = np.concatenate([vectors, dev.vectors]), [*labels, *dev.labels]
        split = PredefinedSplit(
            [-1] * len(train.labels) + [0] * len(dev.labels)
        )  # -1: never held out
    search = GridSearchCV(
        _pipeline(values[0]),
        {"logisticregression__C": values},
        cv=split,
        refit=False,  # a refit would take the dev rows in
        error_score="raise",
    )
    with warnings.catch_warnings():
        # A C that does not converge, or a label rarer than the folds, only lowers the score of
        # that C in the search; the last fit reports on itself.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The least populated class")
        search.fit(vectors, np.array(labels, dtype=object))
    # Of equally good values the first, which regularises most.
    return float(search.best_params_["logisticregression__C"])


def _pipeline(c: float) -> Any:
    with require_extra("A transfer probe", "train"):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=MAX_ITERATIONS))


def second_count(labels: Sequence[str]) -> int:
    """Returns the number of rows of the second most frequent label.

    If it is at least the number of folds, every fold trains on two labels, however rare the
    others are.
    """
    counts = Counter(labels).most_common(2)
    return counts[1][1] if len(counts) == 2 else 0


def label_counts(labels: Sequence[str]) -> str:
    """Returns the most frequent labels for a message: `given: neutral 12, entailment 3`."""
    counts = Counter(labels).most_common()
    rest = f" and {len(counts) - 5} more" if len(counts) > 5 else ""
    return "given: " + ", ".join(f"{label} {count}" for label, count in counts[:5]) + rest

"""Transfer probes: logistic regression on frozen sentence vectors, standardised; its regularisation
(C; small is strong) is chosen on dev rows or within the training rows, never on the test rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from genpool.errors import InputError, require_extra, unknown_name
from genpool.evaluation.accuracy import AccuracyReport, Report, accuracy_report
from genpool.evaluation.vectors import FloatArray, LabelledVectors

GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS = 10
#: folds within the training rows, by which C is chosen without a dev set
INNER_FOLDS = 5
MAX_ITERATIONS = 1000


@contextmanager
def _fits() -> Iterator[None]:
    """Asks for scikit-learn, and hides two of its warnings: of fits that do not converge, and of
    labels with fewer rows than folds. Either lowers the score of a C; the last fit reports itself.
    """
    with require_extra("A transfer probe", "train"), warnings.catch_warnings():
        from sklearn.exceptions import ConvergenceWarning

        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The least populated class")
        yield


@dataclass(frozen=True)
class ProbeReport(Report):
    """The accuracy of a probe and how it was fitted."""

    accuracy: AccuracyReport  # on the test rows
    chosen_c: tuple[float, ...]  # the chosen C, or that of each fold of a cross-validation
    converged: bool  # False if a fit stopped at its last iteration: its accuracy may be low

    def to_markdown(self) -> str:
        """Returns the accuracy report as Markdown, with a line on how the probe was fitted."""
        chosen = ", ".join(f"{c:g}" for c in self.chosen_c)
        folds = f" ({len(self.chosen_c)} folds)" if len(self.chosen_c) > 1 else ""
        note = "" if self.converged else "; a fit stopped before it converged"
        return f"{self.accuracy.to_markdown()}\nLogistic regression, C = {chosen}{folds}{note}\n"


def probe(
    train: LabelledVectors,
    test: LabelledVectors,
    dev: LabelledVectors | None = None,
    *,
    grid: Sequence[float] = GRID,
    seed: int = 0,
) -> ProbeReport:
    """Fits a probe on `train` and scores it on `test`.

    Args:
        train: the training rows.
        test: the rows to score.
        dev: the rows to choose C on. None (default): cross-validation within `train`.
        grid: the values of C to choose from. Default: 1e-4, 1e-3, 1e-2, 1e-1, 1.
        seed: draws the folds of the cross-validation.

    Raises:
        InputError: the rows have different dimensions or labels, or are too few.
        MissingExtraError: the extra `train` is not installed.

    Example:
        >>> probe(labelled_vectors(encode, labels, texts), test).accuracy.accuracy
        0.91
    """
    labels, width = set(train.labels), train.vectors.shape[1]
    for name, part in (("dev", dev or train), ("test", test)):
        if (dim := part.vectors.shape[1]) != width:
            raise InputError(f"{name} vectors have {dim} dimensions and training vectors {width}")
        for row, label in enumerate(part.labels):
            if label not in labels:
                problem = unknown_name("label", label, labels)
                raise InputError(f"{name} row {row + 1}, not in the training rows: {problem}")
    fit = fit_and_predict(train, test.vectors, dev, grid, seed)
    report = accuracy_report(test.labels, fit.predicted, sorted(labels))
    return ProbeReport(report, (fit.c,), fit.converged)


@_fits()
def probe_cross_validated(
    rows: LabelledVectors, *, folds: int = FOLDS, grid: Sequence[float] = GRID, seed: int = 0
) -> ProbeReport:
    """Scores rows without a split: each is predicted by a probe that was not fitted on it.

    Args:
        rows: all rows.
        folds: stratified folds, 2 or more.
        grid: the values of C to choose from, within the training rows of each fold. Default:
            1e-4, 1e-3, 1e-2, 1e-1, 1.
        seed: draws the folds.

    Raises:
        InputError: there are too few rows for so many folds.
        MissingExtraError: the extra `train` is not installed.

    Example:
        >>> probe_cross_validated(labelled_vectors(encode, labels, texts), folds=5)
    """
    if folds < 2:
        raise InputError(f"folds = {folds}: cross-validation needs at least 2")
    max_folds = second_count(rows.labels)
    if max_folds < folds:
        # Two labels need two rows each outside a fold, to choose C among them.
        fewer = f"Use {max_folds} folds (command line: --folds {max_folds})"
        raise InputError(
            f"{folds} folds need 2 labels with {folds} rows each; {label_counts(rows.labels)}. "
            f"{'Provide more rows' if max_folds < 3 else fewer}, or separate training, dev and "
            "test rows (command line: a folder with these tables)"
        )
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    labels = np.array(rows.labels, dtype=object)
    predicted, fits = labels.copy(), list[Fit]()
    for inside, outside in splitter.split(rows.vectors, labels):
        train = LabelledVectors(rows.vectors[inside], tuple(labels[inside]))
        fits.append(fit_and_predict(train, rows.vectors[outside], None, grid, seed))
        predicted[outside] = fits[-1].predicted
    report = accuracy_report(rows.labels, list(predicted), sorted(set(rows.labels)))
    return ProbeReport(report, tuple(f.c for f in fits), all(f.converged for f in fits))


class Fit(NamedTuple):
    """The chosen C, whether the last fit converged, and the labels predicted for the new rows."""

    c: float
    converged: bool
    predicted: list[str]


@_fits()
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
    c = values[0] if len(values) == 1 else choose_c(train, dev, values, seed)
    model = _pipeline(c).fit(train.vectors, np.array(train.labels, dtype=object))
    converged = bool(model[-1].n_iter_.max() < MAX_ITERATIONS)
    return Fit(c, converged, [str(label) for label in model.predict(vectors)])


@_fits()
def choose_c(
    train: LabelledVectors, dev: LabelledVectors | None, values: list[float], seed: int
) -> float:
    """Returns the best of ascending values of C, on `dev` or by cross-validation in `train`."""
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
        # -1: never held out
        split = PredefinedSplit([-1] * len(train.labels) + [0] * len(dev.labels))
    search = GridSearchCV(
        _pipeline(values[0]),
        {"logisticregression__C": values},
        cv=split,
        refit=False,  # a refit would take the dev rows in
        error_score="raise",
    )
    search.fit(vectors, np.array(labels, dtype=object))
    # Of equally good values the first, which regularises most.
    return float(search.best_params_["logisticregression__C"])


def _pipeline(c: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=MAX_ITERATIONS))


def second_count(labels: Sequence[str]) -> int:
    """Returns the number of rows of the second most frequent label.

    With as many folds, every one trains on two labels, however rare the others are.
    """
    counts = Counter(labels).most_common(2)
    return counts[1][1] if len(counts) == 2 else 0


def label_counts(labels: Sequence[str]) -> str:
    """Returns the most frequent labels for a message: `given: neutral 12, entailment 3`."""
    counts = Counter(labels).most_common()
    rest = f" and {len(counts) - 5} more" if len(counts) > 5 else ""
    return "given: " + ", ".join(f"{label} {count}" for label, count in counts[:5]) + rest

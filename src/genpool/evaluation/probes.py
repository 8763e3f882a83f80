"""Transfer probes: what a linear classifier reads from frozen sentence vectors.

Logistic regression on standardised vectors. The strength of its regularisation (C; small is
strong) is chosen on a dev set, or by cross-validation within the training rows; the test rows are
used once. The classifier is always fitted on the training rows alone.

    train = labelled_vectors(encode, train_labels, train_sentences)
    test = labelled_vectors(encode, test_labels, test_sentences)
    print(probe(train, test).to_markdown())
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from genpool.errors import InputError, require_extra, unknown_name
from genpool.evaluation.accuracy import AccuracyReport, accuracy_report
from genpool.evaluation.logistic import fit_and_predict, label_counts, second_count
from genpool.evaluation.tables import LabelledVectors

GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS = 10


@dataclass(frozen=True)
class ProbeReport:
    """The accuracy of a probe and how it was fitted.

    Args:
        accuracy: the accuracy on the test rows.
        chosen_c: the chosen C, or that of each fold if the rows were cross-validated.
        converged: False if a fit stopped at its last iteration; its accuracy may then be low.
    """

    accuracy: AccuracyReport
    chosen_c: tuple[float, ...]
    converged: bool

    def to_dict(self) -> dict[str, Any]:
        """Returns the accuracy report, the chosen C and the convergence, ready for JSON."""
        return {
            "accuracy": self.accuracy.to_dict(),
            "chosen_c": list(self.chosen_c),
            "converged": self.converged,
        }

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
        seed: draws the folds of the cross-validation. Default 0.

    Raises:
        InputError: the rows have different dimensions or labels, or are too few.
        MissingExtraError: the extra `train` is not installed.

    Example:
        >>> probe(labelled_vectors(encode, labels, texts), test).accuracy.accuracy
        0.91
    """
    for name, part in (("dev", dev), ("test", test)):
        if part is not None:
            _check_fits(name, part, train)
    fit = fit_and_predict(train, test.vectors, dev, grid, seed)
    report = accuracy_report(test.labels, fit.predicted, sorted(set(train.labels)))
    return ProbeReport(report, (fit.c,), fit.converged)


def probe_cross_validated(
    rows: LabelledVectors, *, folds: int = FOLDS, grid: Sequence[float] = GRID, seed: int = 0
) -> ProbeReport:
    """Scores rows without a split: each is predicted by a probe that was not fitted on it.

    Args:
        rows: all rows.
        folds: stratified folds, 2 or more. Default 10.
        grid: the values of C to choose from, within the training rows of each fold. Default:
            1e-4, 1e-3, 1e-2, 1e-1, 1.
        seed: draws the folds. Default 0.

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
        needed = f"{folds} folds need 2 labels with {folds} rows each"
        raise InputError(f"{needed}; {label_counts(rows.labels)}. {_fewer_folds(max_folds)}")
    with require_extra("A transfer probe", "train"):
        from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        # A label with fewer rows than folds is merely absent from some folds.
        warnings.filterwarnings("ignore", message="The least populated class")
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
        splits = list(splitter.split(rows.vectors, rows.labels))
    predicted = [""] * len(rows.labels)
    fits = []
    for inside, outside in splits:
        train = LabelledVectors(rows.vectors[inside], tuple(rows.labels[i] for i in inside))
        fit = fit_and_predict(train, rows.vectors[outside], None, grid, seed)
        for row, label in zip(outside, fit.predicted, strict=True):
            predicted[row] = label
        fits.append(fit)
    report = accuracy_report(rows.labels, predicted, sorted(set(rows.labels)))
    return ProbeReport(report, tuple(f.c for f in fits), all(f.converged for f in fits))


def _fewer_folds(max_folds: int) -> str:
    """Returns how rows that allow no more than `max_folds` folds can be probed."""
    split = "separate training, dev and test rows (command line: a folder with these tables)"
    if max_folds < 3:  # two labels need two rows each outside a fold, to choose C among them
        return f"Provide more rows, or {split}"
    return f"Use {max_folds} folds (command line: --folds {max_folds}), or {split}"


def _check_fits(name: str, part: LabelledVectors, train: LabelledVectors) -> None:
    dim, expected = part.vectors.shape[1], train.vectors.shape[1]
    if dim != expected:
        raise InputError(f"{name} vectors have {dim} dimensions and training vectors {expected}")
    known = set(train.labels)
    for row, label in enumerate(part.labels):
        if label not in known:
            problem = unknown_name("label", label, known)
            raise InputError(f"{name} row {row + 1}, not in the training rows: {problem}")

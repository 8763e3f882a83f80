"""Transfer probes: what a linear classifier reads from frozen sentence vectors.

Logistic regression on standardised vectors. How strongly it is regularised (C, small is strong)
is chosen on a dev set, or by cross-validation within the training rows; the test rows are looked
at once. The classifier is always fitted on the training rows alone.

    train = labelled_vectors(encode, train_labels, train_sentences)
    test = labelled_vectors(encode, test_labels, test_sentences)
    print(probe(train, test).to_markdown())
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from genpool.errors import InputError, unknown_name
from genpool.evaluation._extra import train_extra
from genpool.evaluation.accuracy import AccuracyReport, accuracy_report
from genpool.evaluation.logistic import fit_and_predict, label_counts, second_count
from genpool.evaluation.tables import LabelledVectors

GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS = 10


@dataclass(frozen=True)
class ProbeReport:
    """The accuracy of a probe and how it came about.

    `chosen_c` holds one C, or one a fold where the rows were cross-validated. `converged` is False
    where a fit stopped at its last iteration; its accuracy then still counts, but may be low.
    """

    accuracy: AccuracyReport
    chosen_c: tuple[float, ...]
    converged: bool

    def to_dict(self) -> dict[str, Any]:
        """The accuracy report, the chosen C and whether the fits converged, ready for JSON."""
        return {
            "accuracy": self.accuracy.to_dict(),
            "chosen_c": list(self.chosen_c),
            "converged": self.converged,
        }

    def to_markdown(self) -> str:
        """The accuracy report with a line on how the probe was fitted."""
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
    """Fit on `train`, choose C on `dev` (without one: by cross-validation), score `test`."""
    for name, part in (("dev", dev), ("test", test)):
        if part is not None:
            _check_fits(name, part, train)
    fit = fit_and_predict(train, test.vectors, dev, grid, seed)
    report = accuracy_report(test.labels, fit.predicted, sorted(set(train.labels)))
    return ProbeReport(report, (fit.c,), fit.converged)


def probe_cross_validated(
    rows: LabelledVectors, *, folds: int = FOLDS, grid: Sequence[float] = GRID, seed: int = 0
) -> ProbeReport:
    """For a table without a split: every row is predicted by a probe that has not seen it.

    Folds are stratified and drawn with `seed`; C is chosen anew within each fold's training rows.
    """
    if folds < 2:
        raise InputError(f"folds = {folds}: cross-validation needs at least 2")
    most = second_count(rows.labels)
    if most < folds:
        needed = f"{folds} folds need 2 labels with {folds} rows each"
        raise InputError(f"{needed}; {label_counts(rows.labels)}. {_fewer_folds(most)}")
    with train_extra("A transfer probe"):
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


def _fewer_folds(most: int) -> str:
    """How rows that allow no more folds than `most` can be probed."""
    split = "separate training, dev and test rows (command line: a folder with these tables)"
    if most < 3:  # two labels need two rows each outside a fold, to choose C among them
        return f"Give more rows, or {split}"
    return f"Take {most} folds (command line: --folds {most}), or {split}"


def _check_fits(name: str, part: LabelledVectors, train: LabelledVectors) -> None:
    width, expected = part.vectors.shape[1], train.vectors.shape[1]
    if width != expected:
        raise InputError(f"{name} vectors have {width} numbers and training vectors {expected}")
    known = set(train.labels)
    for row, label in enumerate(part.labels):
        if label not in known:
            problem = unknown_name("label", label, known)
            raise InputError(f"{name} row {row + 1}, not in the training rows: {problem}")

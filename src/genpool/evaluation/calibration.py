"""Whether probabilities can be trusted: of the rows predicted with 80 %, 80 % should be right.

The expected calibration error is the mean distance between the two, over bins of the probability of
the predicted label (Guo et al., On Calibration of Modern Neural Networks, ICML 2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from genpool.errors import InputError

BINS = 15


@dataclass(frozen=True)
class CalibrationScores:
    """How sure a classifier is, and how far that is from how often it is right.

    Args:
        error: the expected calibration error, 0 to 1; 0 is best.
        mean_confidence: the mean probability of the predicted labels; as high as the accuracy if
            the classifier is neither too sure nor not sure enough.
    """

    error: float
    mean_confidence: float


def calibration_scores(
    confidences: ArrayLike, correct: ArrayLike, bins: int = BINS
) -> CalibrationScores:
    """Compares the probabilities of predicted labels with how often they are right.

    Args:
        confidences: the probability of the predicted label of every row.
        correct: whether that label is the gold one.
        bins: the number of bins of equal width. Bin i of n has the probabilities above i / n, up to
            and with (i + 1) / n. Default: 15.

    Returns:
        The expected calibration error and the mean confidence.

    Raises:
        InputError: there are no rows, the lengths differ, a probability is not within 0 to 1, or
            `bins` is below 1.

    Example:
        >>> calibration_scores([0.9, 0.9, 0.6, 0.6], [True, True, True, False])
        CalibrationScores(error=0.1, mean_confidence=0.75)
    """
    sure, right = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    if sure.ndim != 1 or sure.shape != right.shape:
        raise InputError(
            f"confidences have the shape {sure.shape} and correct {right.shape}; expected one of "
            "each per row."
        )
    if not len(sure):
        raise InputError("no rows: the calibration of nothing is not defined")
    if bins < 1:
        raise InputError(f"bins is {bins}; expected 1 or more")
    if not ((sure >= 0) & (sure <= 1)).all():  # also refuses NaN
        raise InputError("a confidence is not within 0 to 1")
    limits = np.arange(1, bins) / bins  # the inner limits of the bins
    places = np.searchsorted(limits, sure, side="left")  # (rows,)
    # The number of rows cancels: share of a bin times the distance of its two means.
    distances = np.bincount(places, weights=right - sure, minlength=bins)  # (bins,)
    return CalibrationScores(float(np.abs(distances).sum() / len(sure)), float(sure.mean()))

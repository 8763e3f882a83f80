"""Every measure that needs a package of the extra `train` says how to install it."""

import sys

import numpy as np
import pytest

from genpool.errors import MissingExtraError
from genpool.evaluation import (
    LabelledVectors,
    Predictions,
    ScoredPairs,
    accuracy_report,
    compare_predictions,
    probe_cross_validated,
    relatedness_report,
    similarity_report,
)
from genpool.evaluation.pictures import new_figure

ROWS = Predictions(("1", "2"), ("a", "b"), ("a", "a"))
PAIRS = ScoredPairs(np.arange(9.0), np.eye(9), np.eye(9)[::-1])


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("scipy.stats", lambda: accuracy_report(["a"], ["a"], ["a", "b"])),
        ("sklearn.metrics", lambda: accuracy_report(["a"], ["a"], ["a", "b"])),
        ("scipy.stats", lambda: compare_predictions(ROWS, ROWS)),
        ("scipy.stats", lambda: similarity_report([1, 2], np.eye(2), [[1, 0], [1, 1]])),
        ("sklearn.linear_model", lambda: relatedness_report(PAIRS, PAIRS)),
        (
            "sklearn.model_selection",
            lambda: probe_cross_validated(LabelledVectors(np.ones((20, 2)), ("a", "b") * 10)),
        ),
        ("matplotlib.figure", lambda: new_figure(1, 1)),
    ],
)
def test_missing_package_is_answered_with_the_pip_line(monkeypatch, package, call):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'genpool\[train\]'"):
        call()

import json
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from genpool.errors import InputError
from genpool.evaluation import LabelledVectors, probe, probe_cross_validated
from genpool.evaluation.probes import _fits, fit_and_predict, label_counts, second_count

GRID = (0.01, 1.0)


def made(rows, seed, noise=1.0, labels=("desc", "loc", "num")):
    """Rows whose label moves the mean of one number each."""
    random = np.random.default_rng(seed)
    vectors = noise * random.normal(size=(rows, 5))
    given = np.arange(rows) % len(labels)
    vectors[np.arange(rows), given] += 2
    return LabelledVectors(vectors, tuple(labels[i] for i in given))


def test_probe_reports_the_accuracy_of_its_predictions():
    train, test = made(60, 0), made(45, 1)
    report = probe(train, test, grid=GRID)
    fit = fit_and_predict(train, test.vectors, None, GRID, seed=0)
    right = sum(f == g for f, g in zip(fit.predicted, test.labels, strict=True))
    assert (report.accuracy.correct, report.accuracy.total) == (right, 45)
    assert report.accuracy.labels == ("desc", "loc", "num")
    assert report.chosen_c == (fit.c,)
    assert report.converged
    assert right > 30, "two standard deviations apart: chance is 15"


def test_probe_uses_the_dev_rows_to_choose():
    # Strongly regularised it always says "often"; hardly regularised it finds the rare rows.
    vectors = np.array([[-1.0]] * 30 + [[1.0]] * 10)
    train = LabelledVectors(vectors, ("often",) * 30 + ("rare",) * 10)
    rare_rows = LabelledVectors(vectors[30:], ("rare",) * 10)
    odd_rows = LabelledVectors(vectors[30:], ("often",) * 10)
    grid = (1e-4, 100.0)
    assert probe(train, train, rare_rows, grid=grid).chosen_c == (100.0,)
    assert probe(train, train, odd_rows, grid=grid).chosen_c == (1e-4,)


def test_cross_validation_predicts_every_row_once_with_a_probe_that_has_not_seen_it(monkeypatch):
    rows = made(60, 5)
    seen: list[tuple[float, ...]] = []

    def watch(train, vectors, dev, grid, seed):
        known = {tuple(v) for v in train.vectors.tolist()}
        held = {tuple(v) for v in vectors.tolist()}
        assert dev is None
        assert not known & held
        assert len(known) + len(held) == 60
        seen.extend(held)
        return fit_and_predict(train, vectors, dev, grid, seed)

    monkeypatch.setattr("genpool.evaluation.probes.fit_and_predict", watch)
    report = probe_cross_validated(rows, grid=GRID)
    assert sorted(seen) == sorted(tuple(v) for v in rows.vectors.tolist())
    assert len(report.chosen_c) == 10
    assert report.accuracy.total == 60
    assert report.accuracy.accuracy > 0.7


def test_same_seed_has_the_same_report_and_another_one_other_folds():
    reports = (probe_cross_validated(made(60, 7, 3.0), grid=[1.0], seed=seed) for seed in (1, 1, 2))
    first, again, other = reports
    assert first == again
    assert first.accuracy.confusion != other.accuracy.confusion


def test_label_with_one_row_is_counted_as_a_mistake_not_as_an_error():
    rows = made(60, 8)
    rare = LabelledVectors(rows.vectors, (*rows.labels[:-1], "rare"))
    report = probe_cross_validated(rare, folds=5, grid=[0.1, 1.0])
    scores = {score.label: score for score in report.accuracy.classes}
    assert (scores["rare"].support, scores["rare"].recall) == (1, 0)


def test_report_is_ready_for_json_and_tells_how_it_was_made():
    # Far apart: every row is right if and only if it has its own prediction.
    report = probe_cross_validated(made(30, 9, noise=0.01), folds=3, grid=[0.5])
    assert report.accuracy.confusion == ((10, 0, 0), (0, 10, 0), (0, 0, 10))
    found = json.loads(json.dumps(report.to_dict()))
    assert found["accuracy"]["correct"] == report.accuracy.correct
    assert (found["chosen_c"], found["converged"]) == ([0.5] * 3, True)
    text = report.to_markdown()
    assert text.startswith(report.accuracy.to_markdown())
    assert text.endswith("Logistic regression, C = 0.5, 0.5, 0.5 (3 folds)\n")


def test_probe_that_did_not_converge_says_so(monkeypatch):
    monkeypatch.setattr("genpool.evaluation.probes.MAX_ITERATIONS", 1)
    report = probe(made(30, 0), made(30, 1), grid=[1.0])
    assert not report.converged
    assert "C = 1; a fit stopped before it converged" in report.to_markdown()


def test_only_the_expected_warnings_are_hidden():
    with pytest.warns(UserWarning, match="another"), _fits():
        warnings.warn("another", stacklevel=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: probe(made(9, 0), LabelledVectors(np.ones((1, 5)), ("lock",))),
            r"test row 1, not in the training rows: .*'lock'.*mean 'loc'",
        ),
        (
            lambda: probe(made(9, 0), made(9, 0), LabelledVectors(np.ones((1, 4)), ("loc",))),
            "dev vectors have 4 dimensions and training vectors 5",
        ),
        (lambda: probe_cross_validated(made(9, 0), folds=1), "folds = 1"),
        (
            lambda: probe_cross_validated(made(21, 0)),
            "10 folds need 2 labels with 10 rows each; given: desc 7, loc 7, num 7. "
            r"Use 7 folds \(command line: --folds 7\), or separate",
        ),
        (
            lambda: probe_cross_validated(made(6, 0)),
            "given: desc 2, loc 2, num 2. Provide more rows",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def two_labels(rows, seed, noise=1.0):
    return made(rows, seed, noise, "ab")


def two_class_by_hand(train, new, c):
    """Minimise the penalised loss of two classes directly: another formula and another solver."""
    mean, spread = train.vectors.mean(axis=0), train.vectors.std(axis=0)
    x = (train.vectors - mean) / spread
    sign = np.where(np.array(train.labels) == "b", 1.0, -1.0)

    def loss(weights):
        margins = sign * (x @ weights[:-1] + weights[-1])
        return c * np.logaddexp(0, -margins).sum() + 0.5 * weights[:-1] @ weights[:-1]

    weights = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-4}).x
    return np.where((new - mean) / spread @ weights[:-1] + weights[-1] > 0, "b", "a").tolist()


@pytest.mark.parametrize("c", [0.01, 1.0])
def test_labels_equal_those_of_the_penalised_loss_minimised_directly(c):
    train, new = two_labels(80, 0), two_labels(60, 1).vectors
    fit = fit_and_predict(train, new, None, [c], seed=0)
    assert fit.predicted == two_class_by_hand(train, new, c)
    assert (fit.c, fit.converged) == (c, True)


def test_c_is_the_best_on_the_dev_rows_and_the_dev_rows_are_not_trained_on():
    train, dev, new = two_labels(40, 2, 3.0), two_labels(40, 3, 3.0), two_labels(40, 4, 3.0).vectors
    grid = [1e-4, 1e-2, 1.0, 100.0]
    right = []
    for c in grid:
        found = fit_and_predict(train, dev.vectors, None, [c], seed=0).predicted
        right.append(sum(f == g for f, g in zip(found, dev.labels, strict=True)))
    assert len(set(right)) > 1, "the case should tell the values of C apart"
    fit = fit_and_predict(train, new, dev, grid, seed=0)
    assert fit.c == grid[right.index(max(right))]
    assert fit.predicted == fit_and_predict(train, new, None, [fit.c], seed=0).predicted


def test_of_equally_good_values_the_strongest_regularisation_is_taken():
    # The second value is the same in every row, which is harmless.
    rows = LabelledVectors(np.array([[-1.0, 7.0], [1.0, 7.0]] * 20), ("a", "b") * 20)
    fit = fit_and_predict(rows, rows.vectors, None, [1.0, 0.1, 10.0], seed=0)
    assert (fit.c, fit.predicted) == (0.1, ["a", "b"] * 20)


@pytest.mark.parametrize(
    ("train", "grid", "message"),
    [
        (two_labels(9, 0), [], r"is \[\]; expected positive numbers"),
        (two_labels(9, 0), [1.0, -1.0], r"is \[1.0, -1.0\]; expected positive"),
        (made(9, 0, labels="a"), [1.0], "at least 2 labels; given: a 9"),
        (
            LabelledVectors(np.eye(3), ("a", "a", "b")),
            [0.1, 1.0],
            "2 labels need 2 training rows each; given: a 2, b 1. Provide more rows, a dev set",
        ),
    ],
)
def test_rows_that_cannot_be_fitted_are_refused(train, grid, message):
    with pytest.raises(InputError, match=message):
        fit_and_predict(train, train.vectors, None, grid, seed=0)


def test_counts_of_labels_are_short_and_in_order():
    assert second_count("aaabbc") == 2
    assert second_count("aaa") == 0
    assert label_counts("abbcccddddeeeeeffffff") == "given: f 6, e 5, d 4, c 3, b 2 and 1 more"

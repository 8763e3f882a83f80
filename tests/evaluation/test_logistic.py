import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from genpool.errors import InputError
from genpool.evaluation import LabelledVectors, logistic
from genpool.evaluation.logistic import fit_and_predict, label_counts, second_count


def made(rows, seed, noise=1.0, labels="ab"):
    """Rows whose label moves the mean of one number each."""
    random = np.random.default_rng(seed)
    vectors = noise * random.normal(size=(rows, 4))
    given = random.integers(0, len(labels), rows)
    given[: len(labels)] = range(len(labels))
    vectors[np.arange(rows), given] += 1.5
    return LabelledVectors(vectors, tuple(labels[i] for i in given))


def two_class_by_hand(train, new, c):
    """Minimise the penalised loss of two classes directly: another formula and another solver."""
    mean, spread = train.vectors.mean(axis=0), train.vectors.std(axis=0)
    x = (train.vectors - mean) / spread
    sign = np.where(np.array(train.labels) == "b", 1.0, -1.0)

    def loss(weights):
        margins = sign * (x @ weights[:-1] + weights[-1])
        return c * np.logaddexp(0, -margins).sum() + 0.5 * weights[:-1] @ weights[:-1]

    weights = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-4}).x
    return np.where((new - mean) / spread @ weights[:-1] + weights[-1] > 0, "b", "a").tolist()


@pytest.mark.parametrize("c", [0.01, 1.0])
def test_labels_equal_those_of_the_penalised_loss_minimised_directly(c):
    train, new = made(80, 0), made(60, 1).vectors
    fit = fit_and_predict(train, new, None, [c], seed=0)
    assert fit.predicted == two_class_by_hand(train, new, c)
    assert (fit.c, fit.converged) == (c, True)


def test_c_is_the_best_on_the_dev_rows_and_the_dev_rows_are_not_trained_on():
    train, dev, new = made(40, 2, 3.0), made(40, 3, 3.0), made(40, 4, 3.0).vectors
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
    vectors = np.array([[-1.0], [1.0]] * 20)
    rows = LabelledVectors(vectors, ("a", "b") * 20)
    assert fit_and_predict(rows, vectors, None, [1.0, 0.1, 10.0], seed=0).c == 0.1


def test_same_seed_gives_the_same_choice():
    train = made(60, 5, 4.0)
    first, second = (
        fit_and_predict(train, train.vectors, None, [1e-3, 1e-1, 10.0], seed=3) for _ in range(2)
    )
    assert first == second


def test_a_label_with_a_single_row_does_not_stop_the_choice():
    train = made(41, 6)
    rare = LabelledVectors(train.vectors, (*train.labels[:-1], "rare"))
    assert fit_and_predict(rare, train.vectors, None, [0.1, 1.0], seed=0).c in (0.1, 1.0)


def test_number_that_is_the_same_in_every_row_is_harmless():
    train = made(40, 7)
    vectors = np.hstack([train.vectors, np.full((40, 1), 7.0)])
    plain = fit_and_predict(train, train.vectors, None, [1.0], seed=0)
    wider = LabelledVectors(vectors, train.labels)
    assert fit_and_predict(wider, vectors, None, [1.0], seed=0) == plain


def test_fit_that_stops_early_says_so_and_warns_nobody(monkeypatch):
    monkeypatch.setattr(logistic, "MAX_ITERATIONS", 1)
    train = made(40, 8)
    assert not fit_and_predict(train, train.vectors, None, [1.0, 10.0], seed=0).converged


def test_warnings_that_are_not_about_convergence_are_passed_on(monkeypatch):
    class Warner:
        def fit(self, *_):
            warnings.warn("something else", UserWarning, stacklevel=1)

        def predict(self, vectors):
            return ["a"] * len(vectors)

    monkeypatch.setattr(logistic, "_pipeline", lambda _: Warner())
    train = made(40, 8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit_and_predict(train, train.vectors, None, [1.0], seed=0)
    assert [str(one.message) for one in caught] == ["something else"]


@pytest.mark.parametrize(
    ("train", "grid", "message"),
    [
        (made(9, 0), [], r"is \[\]; expected positive numbers"),
        (made(9, 0), [1.0, -1.0], r"is \[1.0, -1.0\]; expected positive"),
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

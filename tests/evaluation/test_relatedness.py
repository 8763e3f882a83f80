import sys

import numpy as np
import pytest

from genpool.errors import InputError, MissingExtraError
from genpool.evaluation import ScoredPairs, relatedness_report


def made(rows, seed, noise=0.3, dim=4):
    """Pairs whose score falls with the distance of their first number."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, rows, dim))
    scores = 5 - np.abs(a[:, 0] - b[:, 0]) + a[:, 1] * b[:, 1]
    return ScoredPairs(scores + noise * random.normal(size=rows), a, b)


def features(pairs):
    return np.hstack([np.abs(pairs.a - pairs.b), pairs.a * pairs.b])


def ridge_by_hand(train_x, train_y, test_x, alpha):
    """Standardise by the training rows, solve the normal equations, add the mean."""
    mean, spread = train_x.mean(axis=0), train_x.std(axis=0)
    x, new = (train_x - mean) / spread, (test_x - mean) / spread
    weights = np.linalg.solve(
        x.T @ x + alpha * np.eye(x.shape[1]), x.T @ (train_y - train_y.mean())
    )
    return new @ weights + train_y.mean()


def test_report_equals_the_normal_equations_for_one_alpha():
    train, test = made(60, 1), made(40, 2)
    report = relatedness_report(train, test, alphas=[10.0])
    found = ridge_by_hand(features(train), train.scores, features(test), 10.0)
    assert report.alpha == 10.0
    assert report.total == 40
    assert report.mse == pytest.approx(np.mean((found - test.scores) ** 2))
    assert report.pearson == pytest.approx(np.corrcoef(found, test.scores)[0, 1])
    first, second = (np.argsort(np.argsort(values)) for values in (found, test.scores))
    assert report.spearman == pytest.approx(np.corrcoef(first, second)[0, 1])


@pytest.mark.parametrize("seed", range(8))
def test_alpha_is_the_best_when_each_training_pair_is_left_out_once(seed):
    train = made(12, seed, noise=2.0)
    alphas = (0.1, 10.0, 1000.0)
    x = features(train)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    errors = []
    for alpha in alphas:
        own = 0.0
        for row in range(12):
            others = np.arange(12) != row
            y = train.scores[others]
            middle = x[others].mean(axis=0)
            kept = x[others] - middle
            weights = np.linalg.solve(kept.T @ kept + alpha * np.eye(8), kept.T @ (y - y.mean()))
            own += ((x[row] - middle) @ weights + y.mean() - train.scores[row]) ** 2
        errors.append(own)
    report = relatedness_report(train, made(20, 99), alphas)
    assert report.alpha == alphas[int(np.argmin(errors))]


def test_test_pairs_do_not_change_the_choice_of_alpha():
    train = made(50, 5, noise=1.0)
    assert (
        relatedness_report(train, made(30, 6)).alpha
        == relatedness_report(train, made(30, 7, noise=50.0)).alpha
    )


def test_what_can_be_learned_is_learned():
    report = relatedness_report(made(400, 8, noise=0.01), made(200, 9, noise=0.01))
    assert report.pearson > 0.999
    assert report.mse < 0.01


def test_numbers_are_in_the_dictionary_and_the_table():
    report = relatedness_report(made(60, 1), made(40, 2), alphas=[10.0])
    assert list(report.to_dict()) == ["total", "pearson", "spearman", "mse", "alpha"]
    expected = f"| regression | 40 | {report.pearson:.4f} | {report.spearman:.4f} | "
    assert expected + f"{report.mse:.4f} | 10 |" in report.to_markdown()


@pytest.mark.parametrize(
    ("train", "test", "alphas", "message"),
    [
        (made(9, 0), made(9, 0, dim=3), [1.0], "4 dimensions and test vectors 3"),
        (made(2, 0), made(9, 0), [1.0], "at least 3 training pairs, not 2"),
        (made(9, 0), made(9, 0), [], r"is \[\]; expected positive numbers"),
        (made(9, 0), made(9, 0), [1.0, 0.0], r"is \[1.0, 0.0\]; expected positive"),
        (
            ScoredPairs(np.arange(9.0), np.ones((9, 2)), np.ones((9, 2))),
            made(9, 0, dim=2),
            [1.0],
            "all 9 predicted scores are 4",
        ),
    ],
)
def test_pairs_that_do_not_fit_are_refused(train, test, alphas, message):
    with pytest.raises(InputError, match=message):
        relatedness_report(train, test, alphas)


def test_missing_package_is_answered_with_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(MissingExtraError, match=r"genpool\[train\]"):
        relatedness_report(made(9, 0), made(9, 0))

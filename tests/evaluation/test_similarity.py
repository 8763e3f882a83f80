import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from genpool.errors import InputError
from genpool.evaluation import ScoredPairs, relatedness_report, similarity_report
from genpool.evaluation.similarity import cosine_pairs


def pearson(x, y):
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    both = math.fsum((p - mean_x) * (q - mean_y) for p, q in zip(x, y, strict=True))
    own_x = math.fsum((p - mean_x) ** 2 for p in x)
    own_y = math.fsum((q - mean_y) ** 2 for q in y)
    return both / math.sqrt(own_x * own_y)


def ranks(values):
    """Each value's rank; equal ones share the mean of their places."""
    return [
        sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values
    ]


def test_cosines_of_a_hand_worked_case():
    a = [[1, 0], [1, 1], [3, 4], [2, 0], [0, 0], [1, 2]]
    b = [[0, 5], [2, 2], [4, 3], [-1, 0], [1, 2], [0, 0]]
    assert cosine_pairs(a, b) == pytest.approx([0, 1, 24 / 25, -1, 0, 0])


def test_rounding_does_not_carry_a_cosine_past_one():
    a = np.random.default_rng(0).normal(size=(1000, 7))
    units = a / np.linalg.norm(a, axis=1, keepdims=True)
    assert np.sum(units * units, axis=1).max() > 1, "the case should need the limit"
    assert (cosine_pairs(a, a).max(), cosine_pairs(a, -a).min()) == (1, -1)


properties = settings(deadline=None)  # the first case also loads packages


@properties
@given(arrays(np.float64, (2, 3, 4), elements=st.floats(-1e300, 1e300)))
def test_cosine_is_within_its_limits_and_symmetric_for_numbers_of_any_size(both):
    found = cosine_pairs(both[0], both[1])
    assert np.all(np.abs(found) <= 1)
    assert np.array_equal(found, cosine_pairs(both[1], both[0]))


@properties
@given(arrays(np.float64, (2, 3, 4), elements=st.floats(-9, 9).map(lambda x: round(x, 2))))
def test_cosine_equals_a_loop_over_the_numbers(both):
    for row, found in enumerate(cosine_pairs(both[0], both[1])):
        a, b = both[0][row].tolist(), both[1][row].tolist()
        lengths = math.hypot(*a) * math.hypot(*b)
        dot = math.fsum(p * q for p, q in zip(a, b, strict=True))
        assert found == pytest.approx(dot / lengths if lengths else 0, abs=1e-12)


@properties
@given(st.integers(0, 10**6))
def test_report_equals_both_correlations_by_their_formulas(seed):
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, 9, 5))
    scores = random.choice([1.0, 2.5, 3.0, 4.0, 5.0], size=9)
    scores[:2] = 1, 5
    report = similarity_report(scores, a, b)
    cosines = cosine_pairs(a, b).tolist()
    assert report.total == 9
    assert report.pearson == pytest.approx(pearson(scores.tolist(), cosines))
    assert report.spearman == pytest.approx(pearson(ranks(scores.tolist()), ranks(cosines)))


def test_scores_in_the_order_of_the_cosines_have_spearman_one():
    a = np.tile([1.0, 0.0], (4, 1))
    b = [[math.cos(t), math.sin(t)] for t in (1.5, 1.0, 0.5, 0.1)]
    report = similarity_report([0, 1, 4, 5], a, b)
    assert report.spearman == pytest.approx(1)
    assert report.pearson < 1
    assert report.to_dict() == {"total": 4, "pearson": report.pearson, "spearman": report.spearman}
    assert f"| cosine | 4 | {report.pearson:.4f} | 1.0000 |" in report.to_markdown()


MANY = np.random.default_rng(0).normal(size=(50, 7))


@pytest.mark.parametrize(
    ("scores", "a", "b", "message"),
    [
        # Cosines that differ by rounding only count as constant.
        (np.arange(50), MANY, MANY * np.linspace(0.1, 3, 50)[:, None], "all 50 cosines are 1"),
        ([3, 3, 3], np.eye(3), np.ones((3, 3)) + np.eye(3)[::-1], "all 3 gold scores are 3"),
        ([1, 2], np.zeros((2, 3)), np.eye(2, 3), "all 2 cosines are 0"),
        ([1], np.ones((1, 3)), np.ones((1, 3)), "at least 2 pairs, not 1"),
        ([1, 2], np.ones((3, 3)), np.ones((3, 3)), "2 gold scores; expected 3"),
        ([1, 2], [[1, np.nan], [1, 1]], np.ones((2, 2)), "a: 1 of 2 rows hold NaN"),
    ],
)
def test_correlation_that_is_not_defined_is_refused(scores, a, b, message):
    with pytest.raises(InputError, match=message):
        similarity_report(scores, a, b)


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
    assert (report.alpha, report.total) == (10.0, 40)
    assert list(report.to_dict()) == ["total", "pearson", "spearman", "mse", "alpha"]
    line = f"| regression | 40 | {report.pearson:.4f} | {report.spearman:.4f} | "
    assert line + f"{report.mse:.4f} | 10 |" in report.to_markdown()
    assert report.mse == pytest.approx(np.mean((found - test.scores) ** 2))
    assert report.pearson == pytest.approx(np.corrcoef(found, test.scores)[0, 1])
    first, second = (np.argsort(np.argsort(values)) for values in (found, test.scores))
    assert report.spearman == pytest.approx(np.corrcoef(first, second)[0, 1])


@pytest.mark.parametrize("seed", range(4))
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
    for test in (made(20, 99), made(30, 7, noise=50.0)):  # which do not change the choice
        assert relatedness_report(train, test, alphas).alpha == alphas[int(np.argmin(errors))]


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

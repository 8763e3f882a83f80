import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from genpool.errors import InputError
from genpool.evaluation import Predictions, compare_predictions


def made(right, ids=None, gold=None):
    """Predictions that are right where `right` says so."""
    gold = gold or ["x"] * len(right)
    ids = ids or [str(i) for i in range(len(right))]
    predicted = [g if hit else "wrong" for g, hit in zip(gold, right, strict=True)]
    return Predictions(tuple(ids), tuple(gold), tuple(predicted))


def mcnemar(only_a, only_b):
    """Two-sided exact test: twice the smaller tail of coin throws, by summing their counts."""
    throws = only_a + only_b
    tail = sum(math.comb(throws, k) for k in range(min(only_a, only_b) + 1))
    return min(1.0, 2 * tail / 2**throws)


def t_statistic(a, b):
    n = len(a)
    differences = [int(x) - int(y) for x, y in zip(a, b, strict=True)]
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    return mean / math.sqrt(variance / n)


def t_tail(t, freedom):
    """The upper tail of Student's t, by integrating its density."""
    scale = math.exp(special.gammaln((freedom + 1) / 2) - special.gammaln(freedom / 2))
    scale /= math.sqrt(freedom * math.pi)

    def density(x):
        return scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2)

    return 0.5 - integrate.quad(density, 0, t)[0]


def test_hand_worked_case_of_ten_rows():
    a = made([1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    b = made([1, 1, 1, 1, 1, 0, 0, 0, 1, 0])
    found = compare_predictions(a, b)
    assert (found.correct_a, found.correct_b, found.total) == (8, 6, 10)
    assert (found.only_a, found.only_b) == (3, 1)
    assert (found.accuracy_a, found.accuracy_b) == (0.8, 0.6)
    assert found.difference == pytest.approx(0.2)
    # Of 16 outcomes of 4 throws, 1 + 4 have at most one head and as many at most one tail.
    assert found.mcnemar_p_value == pytest.approx(10 / 16)
    # Squares of (d − 0.2): 3 × 0.64 + 1 × 1.44 + 6 × 0.04 = 3.6; variance 0.4; error √0.04 = 0.2.
    assert found.t_statistic == pytest.approx(1.0)
    assert found.t_p_value == pytest.approx(t_tail(1.0, 9), abs=1e-9)
    # 2.2621571628 is the table's two-sided 95 % point of t with 9 degrees of freedom.
    assert found.interval == pytest.approx((0.2 - 0.4524314326, 0.2 + 0.4524314326), abs=1e-9)


ROWS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)


@settings(deadline=None)  # the first case also loads packages
@given(ROWS)
def test_every_number_equals_its_formula_on_any_rows(rows):
    a, b = [x for x, _ in rows], [y for _, y in rows]
    found = compare_predictions(made(a), made(b))
    only_a, only_b = rows.count((True, False)), rows.count((False, True))
    assert (found.only_a, found.only_b) == (only_a, only_b)
    assert found.mcnemar_p_value == pytest.approx(mcnemar(only_a, only_b))
    assert found.difference == pytest.approx(found.accuracy_a - found.accuracy_b)
    assert -1 <= found.interval[0] <= found.difference <= found.interval[1] <= 1
    if found.t_statistic is not None:
        assert found.t_statistic == pytest.approx(t_statistic(a, b))
        expected = t_tail(found.t_statistic, len(rows) - 1)
        assert found.t_p_value == pytest.approx(expected, abs=1e-7)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["total"] == len(rows)


@settings(deadline=None)  # the first case also loads packages
@given(ROWS)
def test_exchanging_the_models_mirrors_the_answer(rows):
    a, b = made([x for x, _ in rows]), made([y for _, y in rows])
    there, back = compare_predictions(a, b), compare_predictions(b, a)
    assert there.t_p_value + back.t_p_value == pytest.approx(1)
    assert there.mcnemar_p_value == pytest.approx(back.mcnemar_p_value)
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))


def test_predictions_that_are_right_on_the_same_rows_favour_neither():
    other_mistake = Predictions(("0", "1", "2"), ("x", "x", "x"), ("x", "another", "x"))
    found = compare_predictions(made([1, 0, 1]), other_mistake)
    assert (found.t_statistic, found.t_p_value, found.mcnemar_p_value) == (None, 0.5, 1.0)
    assert (found.difference, found.interval) == (0.0, (0.0, 0.0))


def test_one_model_right_everywhere_and_the_other_nowhere_gives_the_limits_of_the_t_test():
    better = compare_predictions(made([1] * 6), made([0] * 6))
    worse = compare_predictions(made([0] * 6), made([1] * 6))
    assert (better.t_statistic, better.t_p_value, better.interval) == (None, 0.0, (1.0, 1.0))
    assert (worse.t_statistic, worse.t_p_value, worse.interval) == (None, 1.0, (-1.0, -1.0))
    assert better.mcnemar_p_value == pytest.approx(2 / 64)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (
            made([1, 1]),
            made([1, 1], ids=["0", "7"]),
            r"row 2 \(line 3.*'1' .* in A, id '7' .* in B",
        ),
        (made([1, 1]), made([1, 1], gold=["x", "y"]), r"row 2 .*gold 'x' in A, .*gold 'y' in B"),
        (made([1, 1]), made([1, 1, 1]), "^A has 2 rows and B has 3"),
        (made([1, 1]), made([1, 1, 1], ids="071"), "row 2 .*id '7' .* in B; A has 2 rows and B"),
        (made([1]), made([1]), "at least 2 rows, .*got 1 and 1"),
        (made([]), made([]), "at least 2 rows, .*got 0 and 0"),
        (
            Predictions(("1", "2"), (None, "x"), ("x", "x")),
            Predictions(("1", "2"), (None, "x"), ("x", "x")),
            "row 1 .*no gold label",
        ),
    ],
)
def test_first_difference_between_the_files_is_named(a, b, message):
    with pytest.raises(InputError, match=message):
        compare_predictions(a, b)


def test_markdown_names_the_models_and_both_tests():
    a = made([1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    b = made([1, 1, 1, 1, 1, 0, 0, 0, 1, 0])
    text = compare_predictions(a, b).to_markdown("generalized", "max")
    assert "| generalized | 80.00 % | 8 | 3 |" in text
    assert "| max | 60.00 % | 6 | 1 |" in text
    assert "generalized minus max = +20.00 points (95 % interval -25.24 to 65.24 %)" in text
    assert "one-tailed paired t-test: t = 1.000, p = 0.1717" in text
    assert "McNemar's exact test: p = 0.625" in text
    assert "t = none, p = 0.5" in compare_predictions(a, a).to_markdown()

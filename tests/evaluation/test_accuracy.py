import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genpool.errors import InputError
from genpool.evaluation import accuracy_report
from genpool.evaluation.accuracy import calibration_error

LABELS = ["entailment", "neutral", "contradiction"]
E, N, C = LABELS
GOLD = [E, E, E, N, N, C]
PREDICTED = [E, E, N, N, C, N]


def wilson(correct, total):
    """Wilson's interval from its formula, with the normal quantile written out."""
    z = 1.959963984540054
    share = correct / total
    centre = (share + z * z / (2 * total)) / (1 + z * z / total)
    spread = share * (1 - share) / total + z * z / (4 * total * total)
    half = z * math.sqrt(spread) / (1 + z * z / total)
    return max(0.0, centre - half), min(1.0, centre + half)


def test_hand_worked_case_of_six_rows():
    report = accuracy_report(GOLD, PREDICTED, LABELS)
    assert (report.correct, report.total, report.accuracy) == (3, 6, 0.5)
    assert report.confusion == ((2, 1, 0), (0, 1, 1), (0, 1, 0))
    entailment, neutral, contradiction = report.classes
    assert (entailment.precision, entailment.recall, entailment.support) == (1.0, 2 / 3, 3)
    assert entailment.f1 == pytest.approx(0.8)
    assert (neutral.precision, neutral.recall, neutral.support) == (1 / 3, 0.5, 2)
    assert neutral.f1 == pytest.approx(0.4)
    assert (contradiction.precision, contradiction.recall, contradiction.f1) == (0, 0, 0)
    assert (report.genres, report.calibration_error) == ((), None)
    assert "genre" not in report.to_markdown() and "onfidence" not in report.to_markdown()


@pytest.mark.parametrize(("correct", "total"), [(0, 5), (5, 5), (1, 2), (8507, 9824)])
def test_interval_is_wilsons(correct, total):
    predicted = [E] * correct + [N] * (total - correct)
    report = accuracy_report([E] * total, predicted, LABELS)
    assert report.interval == pytest.approx(wilson(correct, total), abs=1e-9)


def test_each_genre_has_its_own_accuracy_and_rows_without_genre_count_in_the_total_only():
    genres = ["travel", "fiction", "travel", None, "fiction", "travel"]
    report = accuracy_report(GOLD, PREDICTED, LABELS, genres)
    fiction, travel = report.genres
    assert (fiction.genre, fiction.correct, fiction.accuracy) == ("fiction", 1, 0.5)
    assert (travel.genre, travel.correct, travel.total) == ("travel", 1, 3)
    assert travel.interval == pytest.approx(wilson(1, 3), abs=1e-9)
    assert report.total == 6
    genre = json.loads(json.dumps(report.to_dict()))["genres"][1]
    assert genre.pop("interval") == list(travel.interval)
    assert genre == {"genre": "travel", "correct": 1, "total": 3, "accuracy": 1 / 3}


@settings(deadline=None)  # the first case also loads packages
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=1))
def test_scores_equal_counts_by_a_loop_on_any_rows(rows):
    gold, predicted = [g for g, _ in rows], [p for _, p in rows]
    report = accuracy_report(gold, predicted, "dbca")
    for i, g in enumerate("dbca"):
        for j, p in enumerate("dbca"):
            assert report.confusion[i][j] == rows.count((g, p))
    for score in report.classes:
        hits = rows.count((score.label, score.label))
        assert score.support == gold.count(score.label)
        assert score.recall == pytest.approx(hits / max(1, gold.count(score.label)))
        assert score.precision == pytest.approx(hits / max(1, predicted.count(score.label)))
        both = gold.count(score.label) + predicted.count(score.label)
        assert score.f1 == pytest.approx(2 * hits / max(1, both))
    assert report.correct == sum(g == p for g, p in rows)
    assert 0 <= report.interval[0] <= report.accuracy <= report.interval[1] <= 1


def test_markdown_shows_every_table_and_keeps_bars_within_cells():
    report = accuracy_report(["a|b", "c"], ["a|b", "a|b"], ["a|b", "c"], ["news", "news"])
    text = report.to_markdown()
    assert "Accuracy **50.00 %** (1 of 2; 95 % interval 9.45 to 90.55 %)" in text
    assert "| a\\|b | 50.00 % | 100.00 % | 66.67 % | 1 |" in text
    assert "| news | 50.00 % | 9.45 to 90.55 % | 2 |" in text
    assert "| gold \\ predicted | a\\|b | c |\n|---|---:|---:|\n| a\\|b | 1 | 0 |" in text


def test_calibration_is_reported_where_probabilities_are_known():
    sure = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    report = accuracy_report(GOLD, PREDICTED, LABELS, confidences=sure)
    hits = [g == p for g, p in zip(GOLD, PREDICTED, strict=True)]
    # Every row is alone in its bin.
    error = sum(abs(hit - share) for hit, share in zip(hits, sure, strict=True)) / 6
    assert report.calibration_error == pytest.approx(error)
    assert report.mean_confidence == pytest.approx(0.65)
    line = "Mean confidence 65.00 %, expected calibration error 38.33 % (15 bins)"
    assert line in report.to_markdown().splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([E, E], [E], LABELS), "2 gold labels and 1 predicted labels"),
        (([E], [E], LABELS, ["a", "b"]), "1 gold labels and 2 genres"),
        (([E], [E], LABELS, None, [0.5, 0.5]), "1 gold labels and 2 confidences"),
        (([E], [E], LABELS, None, [1.5]), "confidence is not within 0 to 1"),
        (([E], [E], LABELS, None, [math.nan]), "confidence is not within 0 to 1"),
        (([], [], LABELS), "no rows"),
        (([E], ["nuetral"], LABELS), r"predicted label of row 1.*'nuetral'.*mean 'neutral'"),
        (([E, "-"], [E, E], LABELS), "gold label of row 2: unknown label '-'"),
        (([E], [E], [E]), "2 classes or more, each once: {'entailment': 1}"),
        (([E], [E], [E, N, E]), "each once: {'entailment': 2, 'neutral': 1}"),
    ],
)
def test_wrong_rows_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        accuracy_report(*arguments)


def by_a_loop(rows: list[tuple[float, bool]], bins: int) -> float:
    """The expected calibration error as it is defined: one bin after the other."""
    error = 0.0
    for number in range(bins):
        low, high = number / bins, (number + 1) / bins
        inside = [row for row in rows if low < row[0] <= high or (number == 0 and row[0] == 0)]
        if inside:
            confidence = sum(sure for sure, _ in inside) / len(inside)
            accuracy = sum(right for _, right in inside) / len(inside)
            error += len(inside) / len(rows) * abs(accuracy - confidence)
    return error


SHARES = st.floats(0, 1) | st.integers(0, 30).map(lambda n: n / 30)


@given(st.lists(st.tuples(SHARES, st.booleans()), min_size=1, max_size=60), st.integers(1, 20))
def test_the_error_is_that_of_a_loop(rows: list[tuple[float, bool]], bins: int) -> None:
    error = calibration_error([sure for sure, _ in rows], [right for _, right in rows], bins)
    assert error == pytest.approx(by_a_loop(rows, bins), abs=1e-12)


def test_hand_worked_cases() -> None:
    # Of fifteen bins, 0.61 and 0.66 are in that from 9/15 to 10/15, 0.67 in the next one.
    error = calibration_error([0.61, 0.66, 0.67], [True, False, True])
    assert error == pytest.approx((abs(1 - 1.27) + abs(1 - 0.67)) / 3)
    error = calibration_error([0.9, 0.9, 0.6, 0.6], [True, True, True, False])
    assert error == pytest.approx(0.1)
    assert calibration_error([1.0] * 4, [True] * 4) == 0
    assert calibration_error([1.0] * 4, [False] * 4) == 1
    assert calibration_error([0.75] * 4, [True, True, True, False]) == 0

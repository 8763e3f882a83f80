import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genpool.errors import DataError, InputError
from genpool.evaluation import Predictions, read_predictions, write_predictions

LABELS = ("entailment", "neutral")
TWO_ROWS = Predictions(
    ids=("4705.1", "4705.2"),
    gold=("neutral", None),
    predicted=("neutral", "entailment"),
    labels=LABELS,
    probabilities=((0.25, 0.75), (1.0, 0.0)),
)


def test_file_is_a_plain_table(tmp_path):
    write_predictions(tmp_path / "dev.tsv", TWO_ROWS)
    assert read_predictions(tmp_path / "dev.tsv") == TWO_ROWS
    assert (tmp_path / "dev.tsv").read_bytes() == (
        b"id\tgold\tpredicted\tp:entailment\tp:neutral\n"
        b"4705.1\tneutral\tneutral\t0.25\t0.75\n"
        b"4705.2\t\tentailment\t1\t0\n"
    )


FIELD = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=8
)


@settings(deadline=None)  # writes files
@given(st.data(), st.lists(FIELD, min_size=1, max_size=4, unique=True), st.integers(0, 5))
def test_any_text_and_any_32_bit_probability_survive(tmp_path_factory, data, labels, rows):
    chances = st.floats(0, 1, width=32)
    row = st.tuples(*[chances] * len(labels))
    given_rows = Predictions(
        ids=tuple(data.draw(FIELD) for _ in range(rows)),
        gold=tuple(data.draw(st.none() | FIELD) for _ in range(rows)),
        predicted=tuple(data.draw(st.sampled_from(labels)) for _ in range(rows)),
        labels=tuple(labels),
        probabilities=tuple(data.draw(row) for _ in range(rows)),
    )
    path = tmp_path_factory.mktemp("written") / "any.tsv"
    write_predictions(path, given_rows)
    found = read_predictions(path)
    assert (found.ids, found.gold) == (given_rows.ids, given_rows.gold)
    assert (found.predicted, found.labels) == (given_rows.predicted, given_rows.labels)
    as_32_bit = [np.array(p, dtype=np.float32).tolist() for p in found.probabilities]
    assert as_32_bit == [list(p) for p in given_rows.probabilities]


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "windows.tsv"
    path.write_bytes(b"\xef\xbb\xbfid\tgold\tpredicted\r\n1\ta\tb\r\n")
    assert read_predictions(path) == Predictions(("1",), ("a",), ("b",))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (b"", 1, "found nothing"),
        (b"id,gold,predicted\n", 1, "found id,gold,predicted"),
        (b"id\tgold\tpredicted\tpoints\n", 1, "found the column 'points'"),
        (b"id\tgold\tpredicted\tp:a\tp:a\n", 1, "'p:a' appears 2 times"),
        (b"id\tgold\tpredicted\n1\ta\tb\n2\ta\n", 3, "has 2 fields; expected 3"),
        (b"id\tgold\tpredicted\n1\ta\t\n", 2, "predicted label is empty"),
        (
            b"id\tgold\tpredicted\n\xff\ta\tb\n",
            2,
            "not UTF-8 text: byte 0xff, .*; save it as UTF-8",
        ),
        (b"id\tgold\tpredicted\tp:a\tp:b\n1\ta\tA\t1\t0\n", 2, "unknown predicted label 'A'"),
        (
            b"id\tgold\tpredicted\tp:a\tp:b\n1\ta\ta\tx\t0\n",
            2,
            "a probability is not a number: .*'x'",
        ),
        (b"id\tgold\tpredicted\tp:a\tp:b\n1\ta\ta\tnan\t0\n", 2, "'a' is nan, not within 0 to 1"),
        (b"id\tgold\tpredicted\tp:a\tp:b\n1\ta\ta\t1\t1.5\n", 2, "'b' is 1.5, not within 0 to 1"),
    ],
)
def test_mistake_in_a_file_is_told_with_its_line(tmp_path, text, line, message):
    path = tmp_path / "bad.tsv"
    path.write_bytes(text)
    with pytest.raises(DataError, match=message) as caught:
        read_predictions(path)
    assert (caught.value.path, caught.value.line) == (path, line)


@pytest.mark.parametrize("mark", ["\t", "\n", "\r"])
def test_field_that_would_break_the_table_is_refused(tmp_path, mark):
    with pytest.raises(InputError, match=r"\(line 2\) holds a tab or a line break"):
        write_predictions(tmp_path / "x.tsv", Predictions((f"1{mark}",), ("a",), ("a",)))
    with pytest.raises(InputError, match=r"line 2 holds a character that UTF-8 cannot write"):
        write_predictions(tmp_path / "x.tsv", Predictions(("\ud800",), ("a",), ("a",)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((("1",), (), ("a",)), "1 ids, 0 gold labels, 1 predicted"),
        ((("1",), ("a",), ("a",), ("a", "b")), "1 ids, .* and 0 rows of probabilities"),
        (
            (("1",), ("a",), ("a",), (), ((1.0,),)),
            "1 rows of probabilities; .*probabilities with labels",
        ),
        ((("1",), ("a",), ("a",), ("a", "a"), ((1.0, 0.0),)), "named twice"),
        ((("1",), ("a",), ("a",), ("a", "b"), ((1.0,),)), "row 1 .*1 probabilities for 2 labels"),
        ((("1",), ("a",), ("c",), ("a", "b"), ((1.0, 0.0),)), "row 1 .*unknown predicted label"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns, message):
    with pytest.raises(InputError, match=message):
        Predictions(*columns)

"""What is a list of texts, pairs or labels, and what is said about the rest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from genpool.data.reader import Example
from genpool.errors import InputError
from genpool.training.fitting import read_examples

TEXTS = ["One.", "Two.", "Three."]
LABELS = ["a", "b", "a"]


def labels_of(labels: Any, texts: Any = TEXTS) -> list[str | None]:
    return [example.label for example in read_examples("texts", texts, labels, "label", "training")]


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, pd.Series, pl.Series, lambda values: iter(list(values))]
)
def test_lists_arrays_and_columns_are_read_alike(make: Any) -> None:
    examples = read_examples("texts", make(TEXTS), make(LABELS), "label", "training")
    expected = zip(TEXTS, LABELS, strict=True)
    assert examples == [Example(label, text) for text, label in expected]


def test_a_column_with_another_index_is_read_by_position() -> None:
    texts = pd.Series(["", "Two.", " "], index=[7, 3, 5])  # an empty text is a text
    assert labels_of(pd.Series(LABELS, index=[1, 1, 1]), texts) == LABELS


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, 0], ["0", "1", "0"]),
        (np.array([0, 1, 0]), ["0", "1", "0"]),
        (pd.Series([0.0, 1.0, 0.0]), ["0", "1", "0"]),
        ([True, False, True], ["true", "false", "true"]),
        (np.array([True, False, True]), ["true", "false", "true"]),
        (pd.Series(["a", "b", "a"], dtype="category"), ["a", "b", "a"]),
        ([" a", "b ", "a"], ["a", "b", "a"]),
    ],
)
def test_labels_are_text_as_in_a_table(labels: Any, expected: list[str]) -> None:
    assert labels_of(labels) == expected


@pytest.mark.parametrize(
    ("texts", "labels", "problem"),
    [
        ("One.", LABELS, "the training texts are one string; expected a list"),
        ([], [], "there are no training rows"),
        (TEXTS, [], "the training labels: 0 for 3 texts"),
        (TEXTS, ["a", "b"], "the training labels: 2 for 3 texts"),
        (["One.", None, "Three."], LABELS, r"texts have 1 missing values \(rows 1\)"),
        (["One.", math.nan, pd.NA], LABELS, r"texts have 2 missing values \(rows 1, 2\)"),
        (["One.", 2, "Three."], LABELS, r"row 1: got 2 \(int\); expected a sentence"),
        (TEXTS, ["a", None, "a"], r"labels have 1 missing values \(rows 1\); leave these rows out"),
        (TEXTS, [1.0, np.nan, 2.0], r"labels have 1 missing values \(rows 1\)"),
        (TEXTS, ["a", 1, "a"], "mixed types, such as 'a' and 1"),
        (TEXTS, [True, 0, True], "mixed types"),
        (TEXTS, [0.5, 1.0, 2.0], "contain 0.5; expected whole numbers. To learn scores: task="),
        (TEXTS, ["a", " ", "a"], r"have 1 empty strings \(rows 1\)"),
        (TEXTS, [[1], [2], [3]], "are of the type list"),
        (np.zeros((3, 4)), LABELS, r"have the shape \(3, 4\)"),
        (3, LABELS, "int"),
        ([None] * 8, ["a"] * 8, r"8 missing values \(rows 0, 1, 2, 3, 4, \.\.\.\)"),
    ],
)
def test_what_cannot_be_used_is_named(texts: Any, labels: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        labels_of(labels, texts)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_data_frame_is_refused_with_the_way_to_name_a_column(library: Any) -> None:
    frame = library.DataFrame({"body": TEXTS, "stars": LABELS})
    with pytest.raises(InputError, match=r"data frame with the columns 'body', 'stars'.*frame\["):
        labels_of(LABELS, frame)
    assert labels_of(frame["stars"], frame["body"]) == LABELS


def test_scores_are_finite_numbers() -> None:
    rows = read_examples("texts", TEXTS, np.array([0.5, 1, 2]), "score", "training")
    assert [(row.label, row.score) for row in rows] == [(None, 0.5), (None, 1.0), (None, 2.0)]
    with pytest.raises(InputError, match="row 1 is inf; expected a finite number"):
        read_examples("texts", TEXTS, [0.5, math.inf, 2], "score", "training")
    with pytest.raises(InputError, match="row 0 is 'a'; expected a finite number"):
        read_examples("texts", TEXTS, LABELS, "score", "training")


@pytest.mark.parametrize(
    "pairs",
    [
        [("A.", "B."), ("C.", "D.")],
        [["A.", "B."], ["C.", "D."]],
        np.array([["A.", "B."], ["C.", "D."]]),
        zip(["A.", "C."], ["B.", "D."], strict=True),
    ],
)
def test_pairs_are_read_in_any_usual_form(pairs: Any) -> None:
    expected = [Example("x", "A.", "B."), Example("y", "C.", "D.")]
    assert read_examples("pairs", pairs, ["x", "y"], "label", "training") == expected


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        (["A.", "B."], "row 0 is 'A.'; expected two sentences"),
        ([("A.",), ("B.", "C.")], "row 0 is .*expected two sentences"),
        ([("A.", None), ("B.", "C.")], r"second sentences have 1 missing values \(rows 0\)"),
    ],
)
def test_what_is_no_pair_is_named(pairs: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_examples("pairs", pairs, ["x", "y"], "label", "training")

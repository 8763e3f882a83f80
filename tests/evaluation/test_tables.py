import dataclasses

import numpy as np
import pytest

from genpool.errors import InputError
from genpool.evaluation import LabelledVectors, ScoredPairs, labelled_vectors, scored_pairs


def encode(sentences):
    return np.array([[len(s), s.count("a")] for s in sentences])


def test_labelled_sentences_become_labelled_vectors():
    found = labelled_vectors(encode, ["x", "y"], ["aa", "b"])
    assert found.vectors.tolist() == [[2, 2], [1, 0]]
    assert found.labels == ("x", "y")


def test_labelled_pairs_become_both_sides_their_distance_and_their_product():
    found = labelled_vectors(encode, ["x"], ["aa"], ["b"])
    assert found.vectors.tolist() == [[2, 2, 1, 0, 1, 2, 2, 0]]


def test_pairs_are_encoded_in_one_call_without_repetition():
    calls = []

    def listening(sentences):
        calls.append(list(sentences))
        return encode(sentences)

    found = scored_pairs(listening, [1, 5], ["a", "bb"], ["bb", "a"])
    assert calls == [["a", "bb"]]
    assert found.a.tolist() == found.b[::-1].tolist() == [[1, 1], [2, 0]]
    assert found.scores.tolist() == [1.0, 5.0]


def test_a_table_cannot_be_changed():
    table = LabelledVectors(np.ones((1, 2)), ("x",))
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.labels = ("y",)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: labelled_vectors(encode, ["x"], ["a", "b"]), "1 labels and 2 sentences"),
        (lambda: labelled_vectors(encode, ["x"], ["a"], []), "1 labels and 0 second sentences"),
        (lambda: scored_pairs(encode, [1.0], ["a"], ["b", "c"]), "1 scores, 1 and 2 sentences"),
        (lambda: LabelledVectors(np.ones((3, 2)), ("x",)), "3 vectors and 1 labels"),
        (lambda: LabelledVectors(np.full((1, 2), np.nan), ("x",)), "vectors: 1 of 1 rows hold NaN"),
        (lambda: ScoredPairs(np.ones(2), np.ones((3, 2)), np.ones((3, 2))), r"expected \(3,\)"),
    ],
)
def test_columns_of_different_length_are_refused_with_both_numbers(make, message):
    with pytest.raises(InputError, match=message):
        make()

import numpy as np
import pytest

from genpool.errors import InputError
from genpool.evaluation import LabelledVectors, ScoredPairs, labelled_vectors, scored_pairs
from genpool.evaluation.vectors import as_vectors, encode_sentences


def lengths(sentences):
    """An encoder whose vector says how long a sentence is and how many words it has."""
    return np.array([[len(s), len(s.split())] for s in sentences], dtype=np.float32)


def test_each_different_sentence_is_encoded_once_and_rows_keep_their_order():
    seen = []

    def encode(sentences):
        seen.extend(sentences)
        return lengths(sentences)

    found = encode_sentences(encode, ["a b", "c", "a b", "dd"])
    assert seen == ["a b", "c", "dd"]
    assert found.dtype == np.float64
    assert found.tolist() == [[3, 2], [1, 1], [3, 2], [2, 1]]


@pytest.mark.parametrize(
    ("encode", "sentences", "message"),
    [
        (lengths, [], "no sentences"),
        (lambda s: lengths(s)[:1], ["a", "b"], "1 vectors for 2 sentences"),
        (lambda s: lengths(s)[0], ["a", "b"], r"the shape is \(2,\); expected \(rows, dim\)"),
    ],
)
def test_encoder_that_does_not_fit_is_told(encode, sentences, message):
    with pytest.raises(InputError, match=message):
        encode_sentences(encode, sentences)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0, np.nan], [1, 2], [np.inf, 0]], "mine: 2 of 3 rows hold NaN or infinity: row 1"),
        ([1.0, 2.0], r"mine: the shape is \(2,\); expected \(rows, dim\)"),
        (np.zeros((0, 3)), r"is \(0, 3\); expected"),
        ([["a", "b"]], "mine: not an array of numbers"),
        ([[1.0], [1.0, 2.0]], "mine: not an array of numbers"),
    ],
)
def test_vectors_that_cannot_be_used_are_named(given, message):
    with pytest.raises(InputError, match=message):
        as_vectors(given, "mine")


def test_labelled_sentences_and_pairs_become_labelled_vectors():
    found = labelled_vectors(lengths, ["x", "y"], ["aa", "b c"])
    assert found.vectors.tolist() == [[2, 1], [3, 2]]
    assert found.labels == ("x", "y")
    found = labelled_vectors(lengths, ["x", "y"], ["aa", "b c"], ["b c", "a"])
    assert found.vectors.tolist() == [[2, 1, 3, 2, 1, 1, 6, 2], [3, 2, 1, 1, 2, 1, 3, 2]]


def test_pairs_are_encoded_in_one_call_without_repetition():
    calls = []

    def listening(sentences):
        calls.append(list(sentences))
        return lengths(sentences)

    found = scored_pairs(listening, [1, 5], ["a", "bb"], ["bb", "a"])
    assert calls == [["a", "bb"]]
    assert found.a.tolist() == found.b[::-1].tolist() == [[1, 1], [2, 1]]
    assert found.scores.tolist() == [1.0, 5.0]


def pairs(scores, dim=2):
    return ScoredPairs(np.asarray(scores), np.eye(2), np.eye(2, dim))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: labelled_vectors(lengths, ["x"], ["a", "b"]), "1 labels and 2 sentences"),
        (lambda: labelled_vectors(lengths, ["x"], ["a"], []), "1 labels and 0 second sentences"),
        (lambda: scored_pairs(lengths, [1.0], ["a"], ["b", "c"]), "1 scores, 1 and 2 sentences"),
        (lambda: LabelledVectors(np.ones((3, 2)), ("x",)), "3 vectors and 1 labels"),
        (lambda: LabelledVectors(np.full((1, 2), np.nan), ("x",)), "vectors: 1 of 1 rows hold NaN"),
        (lambda: pairs([1]), "1 gold scores; expected 2"),
        (lambda: pairs([1, np.nan]), "gold scores: .* NaN or infinity: row 2"),
        (lambda: pairs(["a", "b"]), "gold scores: not an array of numbers"),
        (lambda: pairs([1, 2], 3), r"\(2, 2\) and b \(2, 3\)"),
    ],
)
def test_columns_that_do_not_fit_are_refused_with_both_numbers(make, message):
    with pytest.raises(InputError, match=message):
        make()

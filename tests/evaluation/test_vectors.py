import numpy as np
import pytest

from genpool.errors import InputError
from genpool.evaluation import encode_sentences, pair_features
from genpool.evaluation.vectors import as_scores, as_vectors, relatedness_features


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
        (lengths, "a sentence", "got one string"),
        (lengths, [], "no sentences"),
        (lambda s: lengths(s)[:1], ["a", "b"], "1 vectors for 2 sentences"),
        (lambda s: lengths(s)[0], ["a", "b"], r"the shape is \(2,\); expected \(rows, dim\)"),
    ],
)
def test_encoder_that_does_not_fit_is_told(encode, sentences, message):
    with pytest.raises(InputError, match=message):
        encode_sentences(encode, sentences)


def test_pair_features_are_both_sides_their_distance_and_their_product():
    assert pair_features([[1, 2]], [[3, -4]]).tolist() == [[1, 2, 3, -4, 2, 6, 3, -8]]


def test_relatedness_features_do_not_depend_on_the_order_of_a_pair():
    a, b = np.random.default_rng(0).normal(size=(2, 5, 3))
    assert relatedness_features([[1, 2]], [[3, -4]]).tolist() == [[2, 6, 3, -8]]
    assert np.array_equal(relatedness_features(a, b), relatedness_features(b, a))


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


def test_sides_of_different_shape_are_refused_with_both_shapes():
    with pytest.raises(InputError, match=r"\(2, 3\) and b \(2, 4\)"):
        pair_features(np.ones((2, 3)), np.ones((2, 4)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], r"\(1,\); expected \(2,\)"),
        ([1.0, np.nan], "row 2 is nan"),
        (["high", "low"], "not numbers"),
    ],
)
def test_gold_scores_that_cannot_be_used_are_named(given, message):
    with pytest.raises(InputError, match=message):
        as_scores(given, 2)

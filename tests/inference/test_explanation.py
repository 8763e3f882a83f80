"""What a model looked at: weights, influence, offsets, and the overlap of its heads."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.config import ProjectionSettings, TextSettings
from genpool.encoder import ENCODERS
from genpool.inference.explanation import cosines, degrees_between
from genpool.pooling import POOLINGS
from genpool.text import Token
from tests.helpers.explanations import made_up

SENTENCE = "The red dog, not 2 men, runs."

every_pair = pytest.mark.parametrize(
    ("pooling", "encoder"),
    [
        (pooling, encoder)
        for pooling, kind in POOLINGS.items()
        for encoder in ("stacked-bilstm", "lstm", "cnn", "bag-of-words")
        if ENCODERS[encoder].has_gates or not kind.needs_gates
    ],
)


def states_of(model: SentenceEncoder, sentence: str) -> torch.Tensor:
    """The states (1, tokens, dim) of a sentence."""
    batch = model.text.batch([model.text.words(sentence)])
    with torch.no_grad():
        states: torch.Tensor = model.encoder(model.embedding(batch), batch.mask).states
    return states


def angle(first: np.ndarray, second: np.ndarray) -> float:
    """The textbook's formula."""
    lengths = np.linalg.norm(first) * np.linalg.norm(second)
    return math.degrees(math.acos(max(-1.0, min(1.0, float(first @ second / lengths)))))


# --- weights -------------------------------------------------------------------------------------


@every_pair
def test_weights_of_every_head_and_dimension_sum_to_one(make_encoder, pooling, encoder) -> None:
    model = make_encoder(pooling, encoder)
    explanation = model.explain(SENTENCE)
    heads = model.output_dim // model.encoder.output_dim
    assert explanation.weights.shape[:2] == (heads, 10)
    assert explanation.weights.dtype == np.float32
    assert explanation.weights.shape[2] in (1, model.encoder.output_dim)
    assert np.abs(explanation.weights.sum(axis=1) - 1).max() <= 1e-5
    assert explanation.weights.min() >= 0
    assert explanation.token_weights.shape == (heads, 10)
    assert np.abs(explanation.token_weights.sum(axis=1) - 1).max() <= 1e-5


@every_pair
def test_weights_are_those_that_the_vector_was_made_with(make_encoder, pooling, encoder) -> None:
    model = make_encoder(pooling, encoder)
    weights = model.explain(SENTENCE).weights.astype(float)  # (heads, tokens, dim or 1)
    states = states_of(model, SENTENCE)[0].double().numpy()
    heads = (weights * states).sum(axis=1)  # (heads, dim)
    assert np.abs(heads.ravel() - model.encode(SENTENCE)).max() <= 1e-6


def test_mean_weighs_all_tokens_alike_and_last_the_last(make_encoder) -> None:
    mean = make_encoder("mean", "lstm").explain(SENTENCE)
    assert np.abs(mean.token_weights - 0.1).max() <= 1e-6
    last = make_encoder("last", "lstm").explain(SENTENCE)
    assert last.token_weights.tolist() == [[0] * 9 + [1]]
    both = make_encoder("last", "bilstm").explain(SENTENCE)
    assert both.token_weights.tolist() == [[0.5] + [0] * 8 + [0.5]]


def test_max_shows_the_token_that_each_dimension_came_from(make_encoder) -> None:
    model = make_encoder("max", "lstm")
    states = states_of(model, SENTENCE)[0]
    expected = torch.nn.functional.one_hot(states.argmax(dim=0), 10).T.numpy()  # (tokens, dim)
    assert np.array_equal(model.explain(SENTENCE).weights[0], expected)


# --- influence -----------------------------------------------------------------------------------


@every_pair
def test_influence_is_the_angle_to_the_vector_without_the_state(
    make_encoder, pooling, encoder
) -> None:
    """The states of all other tokens are really pooled again, as a sentence of their own."""
    model = make_encoder(pooling, encoder, projection=ProjectionSettings(dim=5)).double()
    explanation = model.explain(SENTENCE)
    batch = model.text.batch([model.text.words(SENTENCE)])
    with torch.no_grad():
        encoded = model.encoder(
            model.embedding(batch), batch.mask, *([True] if model.pooling.needs_gates else [])
        )
    vector, heads = model.encode(SENTENCE).astype(float), explanation.vectors.heads
    for token in range(10):
        rest = [place for place in range(10) if place != token]
        extra = [encoded.gates[:, rest]] if model.pooling.needs_gates else []
        with torch.no_grad():
            pooled = model.pooling(encoded.states[:, rest], batch.mask[:, rest], *extra)
            without = model.projection(pooled.vector)[0].numpy()
        expected = angle(vector, without)
        assert explanation.vector_influence[token] == pytest.approx(expected, abs=1e-2)
        for head, head_without in enumerate(pooled.heads[0].numpy()):
            expected = angle(heads[head], head_without)
            assert explanation.head_influence[head, token] == pytest.approx(expected, abs=1e-4)


@every_pair
def test_influence_has_a_value_for_every_head_and_token(make_encoder, pooling, encoder) -> None:
    model = make_encoder(pooling, encoder)
    explanation = model.explain(SENTENCE)
    assert explanation.vector_influence.shape == (10,)
    assert explanation.head_influence.shape == (model.pooling.heads, 10)
    for values in (explanation.vector_influence, explanation.head_influence):
        assert ((values >= 0) & (values <= 180)).all()


def test_the_only_word_of_a_sentence_turns_the_vector_to_nothing(make_encoder) -> None:
    for pooling in POOLINGS:
        explanation = make_encoder(pooling).explain("dog")
        assert explanation.vector_influence == pytest.approx([90])
        assert explanation.head_influence == pytest.approx(90)


def test_a_token_that_no_dimension_came_from_has_no_influence_on_a_maximum(make_encoder) -> None:
    explanation = make_encoder("max", "lstm").explain(SENTENCE)
    unused = explanation.token_weights[0] == 0
    assert unused.any() and not unused.all()
    assert (explanation.vector_influence[unused] == 0).all()
    assert (explanation.vector_influence[~unused] > 0).all()


def test_a_repeated_state_has_much_weight_and_no_influence(make_encoder) -> None:
    """Why influence is shown first: a bag of words of one word is the same without any of them."""
    explanation = make_encoder("mean", "bag-of-words").explain("dog dog dog")
    assert explanation.token_weights == pytest.approx(1 / 3)
    assert explanation.vector_influence == pytest.approx(0, abs=1e-4)


def test_angles_are_those_of_geometry() -> None:
    first = np.array([1.0, 0.0])
    others = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]])
    assert degrees_between(first, others) == pytest.approx([0, 45, 90, 180, 90])
    assert degrees_between(np.zeros(2), np.zeros(2)) == 0
    tiny = np.array([math.cos(1e-9), math.sin(1e-9)])
    assert degrees_between(first, tiny) == pytest.approx(math.degrees(1e-9), rel=1e-6)
    assert cosines(first, others) == pytest.approx([1, 0.5**0.5, 0, -1, 0])


# --- heads ---------------------------------------------------------------------------------------


def test_the_overlap_of_heads_is_the_weight_on_the_same_tokens() -> None:
    weights = np.array([[0.5, 0.5, 0], [0, 0.25, 0.75]])
    explanation = made_up("a b c", ["a", "b", "c"], weights.tolist())
    assert explanation.head_overlap == pytest.approx(np.array([[1, 0.25], [0.25, 1]]))
    assert explanation.head_distances == pytest.approx(np.array([[0, 0.75], [0.75, 0]]))


def test_the_overlap_is_a_mean_over_dimensions(sentence_encoder) -> None:
    explanation = sentence_encoder.explain(SENTENCE)
    heads, tokens, dims = explanation.weights.shape
    for first in range(heads):
        for second in range(heads):
            shares = [
                sum(
                    min(
                        explanation.weights[first, token, dim],
                        explanation.weights[second, token, dim],
                    )
                    for token in range(tokens)
                )
                for dim in range(dims)
            ]
            expected = sum(shares) / dims
            assert explanation.head_overlap[first, second] == pytest.approx(expected, abs=1e-5)


# --- tokens --------------------------------------------------------------------------------------


def test_tokens_have_their_places_in_the_sentence(sentence_encoder) -> None:
    explanation = sentence_encoder.explain(SENTENCE)
    words = ["The", "red", "dog", ",", "not", "2", "men", ",", "runs", "."]
    assert [token.text for token in explanation.tokens] == words
    assert all(SENTENCE[token.start : token.end] == token.text for token in explanation.tokens)
    starts = [token.start for token in explanation.tokens]
    assert starts == sorted(starts) and starts[0] == 0
    assert explanation.tokens[-1].end == len(SENTENCE)
    assert explanation.sentence == SENTENCE and not explanation.truncated


def test_sentence_ends_are_tokens_without_a_place(make_encoder) -> None:
    model = make_encoder(text=TextSettings(sentence_ends=True))
    explanation = model.explain("a dog")
    assert explanation.tokens == [
        Token("<s>", -1, -1),
        Token("a", 0, 1),
        Token("dog", 2, 5),
        Token("</s>", -1, -1),
    ]
    assert explanation.weights.shape[1] == 4 and (explanation.token_weights > 0).all()
    assert explanation.vector_influence.shape == (4,) and not explanation.truncated
    assert [token.text for token in model.explain("").tokens] == ["<s>", "</s>"]


def test_a_sentence_that_is_cut_is_explained_as_far_as_it_was_read(make_encoder) -> None:
    explanation = make_encoder(text=TextSettings(max_length=2)).explain("a dog runs")
    assert [token.text for token in explanation.tokens] == ["a", "dog"]
    assert np.abs(explanation.token_weights.sum(axis=1) - 1).max() <= 1e-6
    assert explanation.truncated


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("sentence", ["", "   "])
def test_a_sentence_without_tokens_has_an_explanation_without_values(
    make_encoder, pooling: str, sentence: str
) -> None:
    model = make_encoder(pooling)
    explanation = model.explain(sentence)
    heads = model.output_dim // model.encoder.output_dim
    assert explanation.tokens == [] and explanation.token_weights.shape == (heads, 0)
    assert explanation.vector_influence.shape == (0,)
    assert explanation.head_influence.shape == (heads, 0)
    assert not explanation.vectors.vector.any()


def test_explaining_leaves_no_gradients_behind(make_encoder) -> None:
    for pooling in ("generalized", "max"):
        model = make_encoder(pooling)
        model.explain(SENTENCE)
        assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_in_double_precision_explains_alike(sentence_encoder) -> None:
    single = sentence_encoder.explain(SENTENCE)
    double = sentence_encoder.double().explain(SENTENCE)
    assert double.weights.dtype == np.float32
    assert np.abs(single.weights - double.weights).max() <= 1e-5
    assert np.abs(single.vector_influence - double.vector_influence).max() <= 1e-2

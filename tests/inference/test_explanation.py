"""What a model looked at: weights, influence, offsets, and the overlap of its heads."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.config import ProjectionSettings, TextSettings
from genpool.inference.explanation import cosines, degrees_between
from genpool.pooling import POOLINGS, Pooled
from genpool.text import Token

SENTENCE = "The red dog, not 2 men, runs."

every_pair = pytest.mark.parametrize(
    ("pooling", "encoder"),
    [
        *((pooling, "stacked-bilstm") for pooling in POOLINGS),
        *(("generalized", encoder) for encoder in ("lstm", "cnn", "bag-of-words")),
        ("gated", "lstm"),
    ],
)


def states_of(model: SentenceEncoder, sentence: str) -> torch.Tensor:
    """The states (1, tokens, dim) of a sentence."""
    batch = model.text.batch([model.text.words(sentence)])
    with torch.no_grad():
        states: torch.Tensor = model.encoder(model.embedding(batch), batch.mask).states
    return states


def pooled_without(model: SentenceEncoder, sentence: str, token: int) -> Pooled:
    """The states of all other tokens, pooled as a sentence of their own."""
    batch, gates = model.text.batch([model.text.words(sentence)]), model.pooling.needs_gates
    rest = [place for place in range(batch.mask.shape[1]) if place != token]
    with torch.no_grad():
        encoded = model.encoder(model.embedding(batch), batch.mask, gates)
        extra = [encoded.gates[:, rest]] if gates else []
        pooled: Pooled = model.pooling(encoded.states[:, rest], batch.mask[:, rest], *extra)
    return pooled


def angle(first: np.ndarray, second: np.ndarray) -> float:
    """The textbook's formula."""
    lengths = np.linalg.norm(first) * np.linalg.norm(second)
    return math.degrees(math.acos(max(-1.0, min(1.0, float(first @ second / lengths)))))


# --- weights -------------------------------------------------------------------------------------


@every_pair
def test_weights_sum_to_one_and_make_the_vector(make_encoder, pooling, encoder) -> None:
    model = make_encoder(pooling, encoder)
    explanation = model.explain(SENTENCE)
    weights = explanation.weights.astype(float)  # (heads, tokens, dim or 1)
    heads = model.output_dim // model.encoder.output_dim
    assert weights.shape[:2] == explanation.token_weights.shape == (heads, 10)
    assert np.abs(weights.sum(axis=1) - 1).max() <= 1e-5 and weights.min() >= 0
    assert np.abs(explanation.token_weights.sum(axis=1) - 1).max() <= 1e-5
    states = states_of(model, SENTENCE)[0].double().numpy()
    vectors = (weights * states).sum(axis=1)  # (heads, dim)
    assert np.abs(vectors.ravel() - model.encode(SENTENCE)).max() <= 1e-6
    assert all(parameter.grad is None for parameter in model.parameters())


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
    model = make_encoder(pooling, encoder, projection=ProjectionSettings(dim=5)).double()
    explanation = model.explain(SENTENCE)
    vector, heads = model.encode(SENTENCE).astype(float), explanation.vectors.heads
    for token in range(10):
        pooled = pooled_without(model, SENTENCE, token)
        with torch.no_grad():
            without = model.projection(pooled.vector)[0].numpy()
        expected = angle(vector, without)
        assert explanation.vector_influence[token] == pytest.approx(expected, abs=1e-2)
        for head, head_without in enumerate(pooled.heads[0].numpy()):
            expected = angle(heads[head], head_without)
            assert explanation.head_influence[head, token] == pytest.approx(expected, abs=1e-4)


def test_the_only_word_of_a_sentence_turns_the_vector_to_nothing(make_encoder) -> None:
    for pooling in POOLINGS:
        explanation = make_encoder(pooling).explain("dog")
        assert explanation.vector_influence == pytest.approx([90])
        assert explanation.head_influence == pytest.approx(90)


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


def test_the_overlap_is_a_mean_over_dimensions(sentence_encoder) -> None:
    explanation = sentence_encoder.explain(SENTENCE)
    heads, tokens, dims = explanation.weights.shape
    for first in range(heads):
        for second in range(heads):
            pair = explanation.weights[[first, second]]
            shares = [sum(min(pair[:, t, dim]) for t in range(tokens)) for dim in range(dims)]
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
def test_a_sentence_without_tokens_has_an_explanation_without_values(
    make_encoder, pooling: str
) -> None:
    model = make_encoder(pooling)
    explanation = model.explain("  ")
    heads = model.output_dim // model.encoder.output_dim
    assert explanation.tokens == [] and explanation.token_weights.shape == (heads, 0)
    assert explanation.vector_influence.shape == (0,)
    assert explanation.head_influence.shape == (heads, 0)
    assert not explanation.vectors.vector.any()


def test_a_model_in_double_precision_explains_alike(sentence_encoder) -> None:
    single = sentence_encoder.explain(SENTENCE)
    double = sentence_encoder.double().explain(SENTENCE)
    assert double.weights.dtype == np.float32
    assert np.abs(single.weights - double.weights).max() <= 1e-5
    assert np.abs(single.vector_influence - double.vector_influence).max() <= 1e-2


FIRST, SECOND = "The red dog runs.", "A man sleeps"


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def test_the_similarity_of_a_pair_and_its_heads_is_that_of_the_model(
    sentence_encoder: SentenceEncoder,
) -> None:
    pair = sentence_encoder.explain_pair(FIRST, SECOND)
    expected = float(sentence_encoder.similarity(FIRST, SECOND))
    assert pair.similarity == pytest.approx(expected, abs=1e-6)
    assert [side.sentence for side in pair.sentences] == [FIRST, SECOND]
    assert pair.prediction is None
    vectors = sentence_encoder.encode([FIRST, SECOND]).reshape(2, 2, -1).astype(float)
    of_heads = [cosine(first, second) for first, second in zip(*vectors, strict=True)]
    assert pair.head_similarity == pytest.approx(of_heads, abs=1e-6)


def test_influence_on_the_similarity_is_what_the_cosine_loses(
    sentence_encoder: SentenceEncoder,
) -> None:
    pair = sentence_encoder.explain_pair(FIRST, SECOND)
    vectors = [sentence_encoder.encode(text).astype(float) for text in (FIRST, SECOND)]
    for side, (text, tokens) in enumerate([(FIRST, 5), (SECOND, 3)]):
        assert len(pair.similarity_influence[side]) == tokens
        for token in range(tokens):
            without = pooled_without(sentence_encoder, text, token).vector[0].numpy()
            expected = cosine(*vectors) - cosine(without, vectors[1 - side])
            assert pair.similarity_influence[side][token] == pytest.approx(expected, abs=1e-6)


def test_a_sentence_without_words_is_similar_to_none(sentence_encoder: SentenceEncoder) -> None:
    pair = sentence_encoder.explain_pair("", FIRST)
    assert pair.similarity == 0 and not pair.head_similarity.any()
    assert pair.similarity_influence[0].shape == (0,)
    assert not pair.similarity_influence[1].any()


@pytest.mark.parametrize("kind", ["text_classifier", "pair_classifier"])
def test_a_classifier_explains_its_label(request: pytest.FixtureRequest, kind: str) -> None:
    model: TextClassifier | PairClassifier = request.getfixturevalue(kind)
    texts = (FIRST, SECOND)[: model.sentences_per_example]
    example = [texts] if len(texts) == 2 else list(texts)
    explained = model.explain(*texts)
    prediction = explained.prediction
    assert prediction is not None and prediction.labels == model.labels
    [expected] = model.predict_proba(example)
    assert prediction.probabilities == pytest.approx(expected, abs=1e-6)
    assert [prediction.label] == model.predict(example)
    place = int(expected.argmax())
    vectors = [model.encoder.encode(text) for text in texts]
    for side, text in enumerate(texts):
        for token in range(len(explained.sentences[side].tokens)):
            changed = list(vectors)
            changed[side] = pooled_without(model.encoder, text, token).vector[0].numpy()
            with torch.no_grad():
                features = model.features(torch.from_numpy(np.stack(changed)))
                without = model.mlp(features).softmax(dim=1)[0, place]
            loss = float(expected[place] - without)
            assert prediction.influence[side][token] == pytest.approx(loss, abs=1e-6)

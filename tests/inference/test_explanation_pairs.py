"""Which words two sentences are alike by, and which decide the label of a classifier."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.errors import InputError
from genpool.inference.explanation import PairExplanation
from genpool.text import Token
from tests.helpers.explanations import made_up

FIRST, SECOND = "The red dog runs.", "A man sleeps"


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def vector_without(encoder: SentenceEncoder, sentence: str, token: int) -> np.ndarray:
    """The vector of a sentence whose states are all pooled but one."""
    batch = encoder.text.batch([encoder.text.words(sentence)])
    rest = [place for place in range(batch.mask.shape[1]) if place != token]
    with torch.no_grad():
        states = encoder.encoder(encoder.embedding(batch), batch.mask).states[:, rest]
        vector: np.ndarray = encoder.pooling(states, batch.mask[:, rest]).vector[0].numpy()
    return vector


def test_the_similarity_of_a_pair_is_that_of_the_model(sentence_encoder: SentenceEncoder) -> None:
    pair = sentence_encoder.explain_pair(FIRST, SECOND)
    expected = float(sentence_encoder.similarity(FIRST, SECOND))
    assert pair.similarity == pytest.approx(expected, abs=1e-6)
    assert [side.sentence for side in pair.sentences] == [FIRST, SECOND]
    assert pair.prediction is None


def test_every_head_has_a_similarity(sentence_encoder: SentenceEncoder) -> None:
    pair = sentence_encoder.explain_pair(FIRST, SECOND)
    heads = [
        sentence_encoder.encode(sentence).reshape(2, -1).astype(float)
        for sentence in (FIRST, SECOND)
    ]
    expected = [cosine(first, second) for first, second in zip(*heads, strict=True)]
    assert pair.head_similarity == pytest.approx(expected, abs=1e-6)


def test_influence_on_the_similarity_is_what_the_cosine_loses(
    sentence_encoder: SentenceEncoder,
) -> None:
    pair = sentence_encoder.explain_pair(FIRST, SECOND)
    first, second = (sentence_encoder.encode(text).astype(float) for text in (FIRST, SECOND))
    for token in range(5):
        without = vector_without(sentence_encoder, FIRST, token)
        expected = cosine(first, second) - cosine(without, second)
        assert pair.similarity_influence[0][token] == pytest.approx(expected, abs=1e-6)
    for token in range(3):
        without = vector_without(sentence_encoder, SECOND, token)
        expected = cosine(first, second) - cosine(first, without)
        assert pair.similarity_influence[1][token] == pytest.approx(expected, abs=1e-6)
    assert [len(side) for side in pair.similarity_influence] == [5, 3]


def test_a_sentence_without_words_is_similar_to_none(sentence_encoder: SentenceEncoder) -> None:
    pair = sentence_encoder.explain_pair("", FIRST)
    assert pair.similarity == 0 and not pair.head_similarity.any()
    assert pair.similarity_influence[0].shape == (0,)
    assert not pair.similarity_influence[1].any()


def test_a_pair_classifier_explains_its_label(pair_classifier: PairClassifier) -> None:
    explained = pair_classifier.explain(FIRST, SECOND)
    prediction = explained.prediction
    assert prediction is not None
    [expected] = pair_classifier.predict_proba([(FIRST, SECOND)])
    assert prediction.probabilities == pytest.approx(expected, abs=1e-6)
    assert [prediction.label] == pair_classifier.predict([(FIRST, SECOND)])
    assert prediction.labels == pair_classifier.labels
    place = int(expected.argmax())
    vectors = [pair_classifier.encoder.encode(text) for text in (FIRST, SECOND)]
    for side, text in enumerate((FIRST, SECOND)):
        for token in range(len(explained.sentences[side].tokens)):
            changed = list(vectors)
            changed[side] = vector_without(pair_classifier.encoder, text, token)
            with torch.no_grad():
                features = pair_classifier.features(torch.from_numpy(np.stack(changed)))
                without = pair_classifier.mlp(features).softmax(dim=1)[0, place]
            loss = float(expected[place] - without)
            assert prediction.influence[side][token] == pytest.approx(loss, abs=1e-6)


def test_a_text_classifier_explains_its_label(text_classifier: TextClassifier) -> None:
    explained = text_classifier.explain(FIRST)
    prediction = explained.prediction
    assert prediction is not None
    [expected] = text_classifier.predict_proba([FIRST])
    assert prediction.probabilities == pytest.approx(expected, abs=1e-6)
    [influence] = prediction.influence
    place = int(expected.argmax())
    for token in range(5):
        without = vector_without(text_classifier.encoder, FIRST, token)
        with torch.no_grad():
            logits = text_classifier.mlp(torch.from_numpy(without)[None])
        loss = float(expected[place] - logits.softmax(dim=1)[0, place])
        assert influence[token] == pytest.approx(loss, abs=1e-6)


def test_classifiers_explain_sentences_without_words(
    pair_classifier: PairClassifier, text_classifier: TextClassifier
) -> None:
    pair = pair_classifier.explain("", "")
    assert pair.prediction is not None
    assert [len(side) for side in pair.prediction.influence] == [0, 0]
    explained = text_classifier.explain("")
    assert explained.prediction is not None
    [expected] = text_classifier.predict_proba([""])
    assert explained.prediction.probabilities == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("pair", [(1, "a"), ("a", None)])
def test_only_strings_can_be_explained(
    sentence_encoder: SentenceEncoder, pair: tuple[object, object]
) -> None:
    with pytest.raises(InputError, match="expected a sentence"):
        sentence_encoder.explain_pair(*pair)  # type: ignore[arg-type]


def test_a_pair_worked_by_hand() -> None:
    """The first vector is (1, 0), also the second; without a word they turn by 60 degrees."""
    first = made_up("a b", ["a", "b"], [[0.5, 0.5]], turns=[60, 0])
    pair = PairExplanation(first, made_up("c", ["c"], [[1.0]], turns=[180]))
    assert pair.similarity == pytest.approx(1)
    assert pair.similarity_influence[0] == pytest.approx([0.5, 0])
    assert pair.similarity_influence[1] == pytest.approx([2])
    assert pair.first.tokens[0] == Token("a", 0, 0)

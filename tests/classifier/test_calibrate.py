"""`calibrate` of the classifiers: the same predictions with better probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from genpool import PairClassifier, TextClassifier
from genpool.classifier import fit_temperature
from genpool.errors import InputError
from genpool.model import load_model
from genpool.model.classifier import SCORE_TASK, TASK_NOTE
from genpool.tensors.modules import fast_paths

WORDS = ("the", "a", "man", "dog", "sleeps", "rests", "runs", "red", "not", "two")


def sentences(seed: int, count: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(2, 7))) for _ in range(count)]


def pairs(count: int) -> list[tuple[str, str]]:
    return list(zip(sentences(0, count), sentences(1, count), strict=True))


def noisy_labels(probabilities: NDArray[np.float32], names: tuple[str, ...]) -> list[str]:
    """Labels of which about a sixth are not the predicted ones."""
    random = np.random.default_rng(2)
    predicted = probabilities.argmax(axis=1)
    others = random.integers(0, len(names), len(predicted))
    changed = random.random(len(predicted)) < 0.25
    return [names[place] for place in np.where(changed, others, predicted)]


def logits_of(model: TextClassifier | PairClassifier, examples: list[Any]) -> NDArray[np.float64]:
    """The logits, straight from the layers and without any fast path."""
    sides = [[text] for text in examples] if isinstance(examples[0], str) else examples
    tokens = [model.text.words(side) for column in zip(*sides, strict=True) for side in column]
    with torch.no_grad(), fast_paths(False):
        logits: NDArray[np.float64] = model(model.text.batch(tokens)).logits.double().numpy()
    return logits


@pytest.fixture(params=["texts", "pairs"])
def model_and_examples(request: pytest.FixtureRequest) -> tuple[Any, list[Any]]:
    if request.param == "texts":
        return request.getfixturevalue("text_classifier"), sentences(0, 60)
    return request.getfixturevalue("pair_classifier"), pairs(60)


def test_probabilities_are_the_softmax_of_the_divided_logits(
    model_and_examples: tuple[Any, list[Any]],
) -> None:
    model, examples = model_and_examples
    before, logits = model.predict(examples), logits_of(model, examples)
    labels = noisy_labels(model.predict_proba(examples), model.labels)
    gold = [model.labels.index(label) for label in labels]
    temperature = model.calibrate(examples, labels, batch_size=7)
    assert temperature == pytest.approx(fit_temperature(logits, gold), rel=1e-4)
    assert abs(temperature - 1) > 0.05  # or nothing was tested
    expected = softmax(logits / temperature, axis=1)
    assert np.abs(model.predict_proba(examples) - expected).max() < 1e-5
    with fast_paths(False):
        assert np.abs(model.predict_proba(examples) - expected).max() < 1e-5
    assert model.predict(examples) == before
    assert model.notes["temperature"] == temperature


def test_a_model_stays_calibrated_and_is_saved_so(
    pair_classifier: PairClassifier, tmp_path: Path
) -> None:
    examples = pairs(60)
    labels = noisy_labels(pair_classifier.predict_proba(examples), pair_classifier.labels)
    first = pair_classifier.calibrate(examples, labels)
    second = pair_classifier.calibrate(examples, labels)
    assert second == pytest.approx(1, abs=1e-4)
    temperature = pair_classifier.notes["temperature"]
    assert temperature == pytest.approx(first * second, rel=1e-12)
    pair_classifier.save_pretrained(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, PairClassifier) and loaded.notes["temperature"] == temperature
    difference = loaded.predict_proba(examples) - pair_classifier.predict_proba(examples)
    assert np.abs(difference).max() < 1e-6
    assert str(temperature) in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_labels_are_accepted_as_fit_accepts_them(text_classifier: TextClassifier) -> None:
    text_classifier.labels = ("0", "1", "2")
    texts = sentences(0, 60)
    labels = noisy_labels(text_classifier.predict_proba(texts), text_classifier.labels)
    state = {name: value.clone() for name, value in text_classifier.state_dict().items()}
    expected = text_classifier.calibrate(texts, labels)
    text_classifier.load_state_dict(state)
    found = text_classifier.calibrate(np.array(texts), np.array([int(label) for label in labels]))
    assert found == expected


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ([], [], "expected 1 or more different"),
        (["a man", "a dog"], ["neutral"], "the calibration labels: 1 for 2 texts"),
        (["a man", "a dog"], ["neutral", "nuetral"], r"row 1: unknown .* Did you mean 'neutral'"),
        (["a man", "a dog"], ["neutral", None], "1 missing values"),
        (["a man", 5], ["neutral", "neutral"], r"row 1: got 5 \(int\)"),
        ("a man", ["neutral"], "one string"),
        ([("a", "b")], ["neutral"], r"row 0: got .* \(tuple\)"),
    ],
)
def test_what_cannot_be_used_is_told_and_changes_nothing(
    text_classifier: TextClassifier, texts: Any, labels: Any, message: str
) -> None:
    before = text_classifier.mlp.output.weight.detach().clone()
    with pytest.raises(InputError, match=message):
        text_classifier.calibrate(texts, labels)
    assert torch.equal(text_classifier.mlp.output.weight, before)
    assert "temperature" not in text_classifier.notes


def test_pairs_need_two_sentences_and_a_model_of_scores_is_not_calibrated(
    pair_classifier: PairClassifier,
) -> None:
    with pytest.raises(InputError, match="row 0 is 'a man'; expected two sentences"):
        pair_classifier.calibrate(["a man"], ["neutral"])
    pair_classifier.notes[TASK_NOTE] = SCORE_TASK
    with pytest.raises(InputError, match="the model predicts scores"):
        pair_classifier.calibrate([("a man", "a dog")], ["neutral"])

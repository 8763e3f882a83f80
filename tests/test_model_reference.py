"""The fingerprint: the same for copies of a model, another for every change of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from genpool import PairClassifier, SentenceEncoder
from genpool.config import TextSettings
from genpool.errors import InputError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.model.reference import fingerprint
from tests.helpers.small_models import MakeEncoder


def test_a_copy_has_the_fingerprint_of_the_model(
    sentence_encoder: SentenceEncoder, pair_classifier: PairClassifier, tmp_path: Path
) -> None:
    expected = fingerprint(sentence_encoder)
    sentence_encoder.save_pretrained(tmp_path / "encoder")
    assert fingerprint(SentenceEncoder.from_pretrained(tmp_path / "encoder")) == expected
    # The encoder inside this classifier is made from the same seed.
    pair_classifier.encoder.load_state_dict(sentence_encoder.state_dict())
    pair_classifier.save_pretrained(tmp_path / "pairs")
    assert fingerprint(PairClassifier.from_pretrained(tmp_path / "pairs").encoder) == expected
    sentence_encoder.notes["title"] = "another title"
    assert fingerprint(sentence_encoder) == expected


def test_every_weight_counts(sentence_encoder: SentenceEncoder) -> None:
    fingerprints = {fingerprint(sentence_encoder)}
    for parameter in sentence_encoder.parameters():
        with torch.no_grad():
            parameter.view(-1)[-1] += 0.5
        fingerprints.add(fingerprint(sentence_encoder))
    assert len(fingerprints) == 1 + len(list(sentence_encoder.parameters()))


def test_how_text_is_split_counts(make_encoder) -> None:
    texts = [
        TextSettings(),
        TextSettings(rules="whitespace"),
        TextSettings(sentence_ends=True),
        TextSettings(max_length=3),
    ]
    fingerprints = {fingerprint(make_encoder(text=text)) for text in texts}
    assert len(fingerprints) == len(texts)
    exact = make_encoder()
    exact.text.vocabulary.lower_case_fallback = False
    assert fingerprint(exact) not in fingerprints
    assert fingerprint(make_encoder("max")) != fingerprint(make_encoder("mean"))


def test_settings_that_change_vectors_but_no_weights_count(make_encoder: MakeEncoder) -> None:
    usual = make_encoder().settings.embedding
    variants = [
        replace(usual, character_padding="right"),
        replace(usual, dropout_scaling="test"),
        replace(usual, dropout_scaling="test", dropout=0.25),
    ]
    without_effect = [
        replace(usual, dropout=0.25),
        replace(usual, character_initialization="gaussian"),
        replace(usual, frozen=not usual.frozen),
    ]
    expected = fingerprint(make_encoder())
    fingerprints = {fingerprint(make_encoder(embedding=variant)) for variant in variants}
    assert len(fingerprints | {expected}) == 4
    for settings in without_effect:
        assert fingerprint(make_encoder(embedding=settings)) == expected


def test_what_has_no_weights_to_look_at_is_refused() -> None:
    with pytest.raises(InputError, match=r"got SentenceVectors, .* needs the model itself"):
        fingerprint(SentenceVectors())

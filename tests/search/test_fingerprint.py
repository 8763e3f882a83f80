"""The fingerprint: the same for copies of a model, another for every change of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from genpool import PairClassifier, SentenceEncoder
from genpool.config import TextSettings
from genpool.errors import InputError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.search.fingerprint import fingerprint


def test_a_copy_has_the_fingerprint_of_the_model(
    sentence_encoder: SentenceEncoder, pair_classifier: PairClassifier, tmp_path: Path
) -> None:
    own = fingerprint(sentence_encoder)
    sentence_encoder.save_pretrained(tmp_path / "encoder")
    assert fingerprint(SentenceEncoder.from_pretrained(tmp_path / "encoder")) == own
    # The encoder inside this classifier is made from the same seed.
    pair_classifier.encoder.load_state_dict(sentence_encoder.state_dict())
    pair_classifier.save_pretrained(tmp_path / "pairs")
    assert fingerprint(PairClassifier.from_pretrained(tmp_path / "pairs").encoder) == own
    sentence_encoder.notes["title"] = "another title"
    assert fingerprint(sentence_encoder) == own


def test_every_number_counts(sentence_encoder: SentenceEncoder) -> None:
    found = {fingerprint(sentence_encoder)}
    for parameter in sentence_encoder.parameters():
        with torch.no_grad():
            parameter.view(-1)[-1] += 0.5
        found.add(fingerprint(sentence_encoder))
    assert len(found) == 1 + len(list(sentence_encoder.parameters()))


def test_how_text_is_split_counts(make_encoder) -> None:
    texts = [
        TextSettings(),
        TextSettings(rules="whitespace"),
        TextSettings(sentence_ends=True),
        TextSettings(max_length=3),
    ]
    found = {fingerprint(make_encoder(text=text)) for text in texts}
    assert len(found) == len(texts)
    assert fingerprint(make_encoder("max")) != fingerprint(make_encoder("mean"))


def test_what_has_no_weights_to_look_at_is_refused() -> None:
    with pytest.raises(InputError, match=r"got SentenceVectors, .* needs the model itself"):
        fingerprint(SentenceVectors())

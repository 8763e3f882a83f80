"""Folders of earlier versions load and give the vectors that they gave then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import PairClassifier, SentenceEncoder
from genpool.model import load_model

GOLDEN = Path(__file__).parents[1] / "golden"


def test_the_first_encoder_folder_loads_and_gives_its_vectors() -> None:
    expected = json.loads((GOLDEN / "v1-encoder.expected.json").read_text(encoding="utf-8"))
    model = SentenceEncoder.from_pretrained(GOLDEN / "v1-encoder")
    vectors = model.encode(expected["sentences"])
    assert vectors.shape == (6, 12)
    assert np.abs(vectors - np.array(expected["vectors"])).max() <= 1e-6
    assert np.ptp(vectors, axis=0).max() > 0.1
    tokens = [list(token) for token in model.text.tokens(expected["sentences"][0])]
    assert tokens == expected["tokens"]


def test_the_first_pair_classifier_folder_loads_and_gives_its_probabilities() -> None:
    expected = json.loads((GOLDEN / "v1-pair-classifier.expected.json").read_text(encoding="utf-8"))
    model = PairClassifier.from_pretrained(GOLDEN / "v1-pair-classifier")
    pairs = [tuple(pair) for pair in expected["pairs"]]
    assert model.labels == tuple(expected["labels"])
    probabilities = model.predict_proba(pairs)
    assert np.abs(probabilities - np.array(expected["probabilities"])).max() <= 1e-6
    assert np.ptp(probabilities, axis=0).max() > 0.01
    assert model.predict(pairs) == expected["predicted"]


@pytest.mark.parametrize("name", ["v1-encoder", "v1-pair-classifier"])
def test_the_first_folders_are_of_format_1_and_can_be_saved_by_this_version(name, tmp_path) -> None:
    config = json.loads((GOLDEN / name / "config.json").read_text(encoding="utf-8"))
    assert (config["format"], config["format_version"]) == ("genpool", 1)
    model = load_model(GOLDEN / name)
    model.save_pretrained(tmp_path / "again")
    again = load_model(tmp_path / "again")
    assert again.settings == model.settings and again.labels == model.labels
    for key, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[key], tensor)


def test_the_first_encoder_folder_in_4_bits_loads_and_gives_its_vectors() -> None:
    expected = json.loads((GOLDEN / "v1-encoder-int4.expected.json").read_text(encoding="utf-8"))
    config = json.loads((GOLDEN / "v1-encoder-int4" / "config.json").read_text(encoding="utf-8"))
    assert config["precision"] == "int4-tables"
    model = SentenceEncoder.from_pretrained(GOLDEN / "v1-encoder-int4")
    vectors = model.encode(expected["sentences"])
    assert np.abs(vectors - np.array(expected["vectors"])).max() <= 1e-6
    assert np.ptp(vectors, axis=0).max() > 0.05
    assert np.array_equal(vectors[-1], vectors[-2])  # the same words, written in other ways
    assert np.abs(vectors[-1] - vectors[2]).max() > 1e-3
    tokens = [
        [list(token) for token in model.text.tokens(sentence)] for sentence in expected["sentences"]
    ]
    assert tokens == expected["tokens"]

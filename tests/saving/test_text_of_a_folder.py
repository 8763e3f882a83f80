"""The text and the settings of a saved folder: what was saved is loaded, what is wrong refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier, SentenceEncoder
from genpool.config import ClassifierSettings, ModelSettings, to_dict
from genpool.errors import FolderError
from tests.helpers.released_layers import SENTENCES, released_encoder
from tests.helpers.saved_folders import change_json, remove_checksums
from tests.helpers.small_models import LABELS, MakeEncoder

GOLDEN = Path(__file__).parents[1] / "golden"


def test_switches_of_the_released_program_are_saved_and_loaded(
    make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    encoder = released_encoder(make_encoder)
    classifier = ClassifierSettings(5, 0.5, "gaussian", "test")
    encoder.settings = replace(encoder.settings, classifier=classifier)
    model = PairClassifier(encoder, LABELS)
    model.save_pretrained(tmp_path / "model")
    saved = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert saved["settings"] == to_dict(model.settings)
    assert saved["settings"]["text"]["lower_case_fallback"] is False
    assert saved["settings"]["embedding"]["character_padding"] == "right"
    loaded = PairClassifier.from_pretrained(tmp_path / "model")
    assert loaded.settings == model.settings
    assert loaded.text.vocabulary.lower_case_fallback is False
    assert np.array_equal(loaded.encoder.encode(SENTENCES), encoder.encode(SENTENCES))
    pairs = [("the man sleeps", "two Dogs"), ("DOG", "dog")]
    assert np.array_equal(loaded.predict_proba(pairs), model.predict_proba(pairs))


@pytest.mark.parametrize(
    ("name", "kind"), [("v1-encoder", SentenceEncoder), ("v1-pair-classifier", PairClassifier)]
)
def test_a_folder_from_before_the_switches_has_them_off(
    name: str, kind: type[SentenceEncoder | PairClassifier]
) -> None:
    config = json.loads((GOLDEN / name / "config.json").read_text(encoding="utf-8"))
    assert "lower_case_fallback" not in config["settings"]["text"]
    assert "dropout_scaling" not in config["settings"]["embedding"]
    loaded, usual = kind.from_pretrained(GOLDEN / name).settings, ModelSettings()
    assert loaded.text.lower_case_fallback is usual.text.lower_case_fallback is True
    for switch in ("dropout_scaling", "character_initialization", "character_padding"):
        assert getattr(loaded.embedding, switch) == getattr(usual.embedding, switch)
    assert loaded.classifier.initialization == usual.classifier.initialization


@pytest.mark.parametrize(
    ("word_id", "problem"),
    [(10**6, "the id 1000000 of the word 'dog' is out of range"), (4, "is that of '.*' too")],
)
def test_a_folder_in_which_the_id_of_one_word_was_changed_is_refused(
    sentence_encoder: SentenceEncoder, tmp_path: Path, word_id: int, problem: str
) -> None:
    # Every later word would otherwise have the vector of its neighbour, without a sign of it.
    sentence_encoder.save_pretrained(tmp_path / "model")
    remove_checksums(tmp_path / "model")
    change_json(tmp_path / "model" / "tokenizer.json", "model.vocab.dog", word_id)
    with pytest.raises(FolderError, match=problem) as caught:
        SentenceEncoder.from_pretrained(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)

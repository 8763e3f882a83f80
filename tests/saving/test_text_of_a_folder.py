"""The text and the settings of a saved folder: what was saved is loaded, what is wrong refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from genpool import PairClassifier
from genpool.config import ClassifierSettings, to_dict
from tests.helpers.released_layers import SENTENCES, released_encoder
from tests.helpers.small_models import LABELS, MakeEncoder

GOLDEN = Path(__file__).parents[1] / "golden"


def test_switches_of_the_released_program_are_saved_and_loaded(
    make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    encoder = released_encoder(make_encoder)
    classifier = ClassifierSettings(5, 0.5, "gaussian", "test")
    model = PairClassifier.from_encoder(encoder, LABELS, classifier)
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

"""The graph of a model with the released program's layers, and the text beside it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from genpool.errors import FolderError
from genpool.integrations.onnx import OnnxEncoder, export
from tests.helpers.released_layers import SENTENCES, released_encoder, with_halved_embedding
from tests.helpers.small_models import MakeEncoder


@pytest.fixture(scope="module")
def exported(make_encoder: MakeEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "graph"
    export(released_encoder(make_encoder), folder)
    return folder


def test_the_graph_has_the_vectors_of_halved_weights_without_scaling(
    make_encoder: MakeEncoder, exported: Path
) -> None:
    expected = with_halved_embedding(released_encoder(make_encoder)).encode(SENTENCES)
    encoder = OnnxEncoder.from_pretrained(exported)
    np.testing.assert_allclose(encoder.encode(SENTENCES), expected, rtol=0, atol=1e-5)
    assert encoder.text.vocabulary.lower_case_fallback is False


def copied(source: Path, target: Path) -> Path:
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def test_an_export_from_before_the_fallback_was_a_setting_has_it(
    exported: Path, tmp_path: Path
) -> None:
    path = copied(exported, tmp_path / "graph") / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    del config["lower_case_fallback"]
    path.write_text(json.dumps(config), encoding="utf-8")
    assert OnnxEncoder.from_pretrained(path.parent).text.vocabulary.lower_case_fallback is True


def test_an_export_in_which_the_id_of_one_word_was_changed_is_refused(
    exported: Path, tmp_path: Path
) -> None:
    path = copied(exported, tmp_path / "graph") / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"]["vocab"]["dog"] = 99
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FolderError, match="the id 99 of the word 'dog' is out of range"):
        OnnxEncoder.from_pretrained(path.parent)

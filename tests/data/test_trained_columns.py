"""The columns that a model was trained on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from genpool import TextClassifier
from genpool.data.columns import COLUMNS_NOTE, read_trained_columns, trained_columns

COLUMNS = {"label": "stars", "first": "body"}


def test_a_saved_model_keeps_the_columns_in_its_notes(text_classifier, tmp_path):
    text_classifier.notes = {COLUMNS_NOTE: COLUMNS, "seed": 1}
    text_classifier.save_pretrained(tmp_path / "model")
    assert read_trained_columns(tmp_path / "model") == COLUMNS
    assert trained_columns(TextClassifier.from_pretrained(tmp_path / "model").notes) == COLUMNS
    card = (tmp_path / "model" / "README.md").read_text()
    assert "| columns | label = stars, first = body |" in card


@pytest.mark.parametrize(
    "notes",
    [
        {},
        {COLUMNS_NOTE: "stars"},
        {COLUMNS_NOTE: {"label": 5}},
        {COLUMNS_NOTE: {"second": "b"}},
        {COLUMNS_NOTE: {"words": "b"}},
    ],
)
def test_notes_without_columns_that_can_be_used_have_none(notes):
    assert trained_columns(notes) == {}


@pytest.mark.parametrize("config", [None, "{", "[]", '{"notes": 3}', '{"notes": {"columns": 3}}'])
def test_a_folder_that_cannot_be_read_has_none(tmp_path, config):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    assert read_trained_columns(tmp_path) == {}
    assert read_trained_columns(None) == {}


def test_they_are_read_without_pytorch(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"notes": {COLUMNS_NOTE: COLUMNS}}))
    program = (
        "import sys\n"
        "from genpool.data.columns import read_trained_columns\n"
        f"print(read_trained_columns({str(tmp_path)!r}), 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == f"{COLUMNS} False\n", run.stderr

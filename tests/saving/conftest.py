"""Saved models, in folders that a test may change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from genpool import PairClassifier
from genpool.config import TextSettings
from tests.helpers.small_models import SMALL_MLP


@pytest.fixture(scope="module")
def saved(make_encoder, tmp_path_factory) -> Path:
    """A saved pair classifier; tests change copies of it."""
    encoder = make_encoder(text=TextSettings(rules="whitespace"))
    labels = ["yes", "no", "perhaps"]
    path = tmp_path_factory.mktemp("saved") / "model"
    PairClassifier(encoder, labels, SMALL_MLP).save_pretrained(path)
    return path


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "model")
    return tmp_path / "model"

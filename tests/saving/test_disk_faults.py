"""Saving on a disk that is full or read-only keeps the old model."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import PairClassifier
from genpool.errors import FolderError
from genpool.model import load_model
from tests.helpers.saved_folders import FILES, PAIRS, content_of


def test_every_file_is_on_the_disk_before_it_takes_the_place_of_the_old_one(
    folder, monkeypatch
) -> None:
    model = load_model(folder)
    events = []
    flush, rename = os.fsync, os.rename

    def flushing(file: int) -> None:
        events.append(Path(f"/proc/self/fd/{file}").readlink().name)
        flush(file)

    def renaming(old: Path, new: Path) -> None:
        events.append(f"{old.name} -> {new.name}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(os, "rename", renaming)
    model.save_pretrained(folder)
    assert set(events[:4]) == FILES
    assert events[4] == "model -> .model.previous"
    assert re.fullmatch(r"\.model\.[0-9a-f]{8}-\d+-[0-9a-f]{8}\.saving -> model", events[5])
    assert len(events) == 6


def test_a_disk_that_fills_up_while_writing_keeps_the_old_model(folder: Path) -> None:
    model = PairClassifier.from_pretrained(folder)
    expected = model.predict_proba(PAIRS)
    before = content_of(folder)
    with torch.no_grad():
        model.mlp.output.bias.add_(1)
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 100, 2000, len(before["model.safetensors"]) - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(FolderError) as caught:
                model.save_pretrained(folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert f"{folder}: the model could not be written" in str(caught.value)
        assert content_of(folder) == before
        assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert np.array_equal(PairClassifier.from_pretrained(folder).predict_proba(PAIRS), expected)


def test_a_disk_that_is_read_only_keeps_the_old_model(folder: Path, monkeypatch) -> None:
    def refuses(*args, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    model = PairClassifier.from_pretrained(folder)
    before = content_of(folder)
    with monkeypatch.context() as patch:
        for name in ("mkdir", "rename", "unlink", "rmdir"):
            patch.setattr(os, name, refuses)
        with pytest.raises(FolderError, match="could not be written: Read-only file system"):
            model.save_pretrained(folder)
    assert content_of(folder) == before
    assert isinstance(load_model(folder), PairClassifier)


def test_notes_that_are_not_json_leave_the_old_model(folder: Path) -> None:
    model = PairClassifier.from_pretrained(folder)
    before = content_of(folder)
    model.notes = {"data": object()}
    with pytest.raises(TypeError, match="not JSON serializable"):
        model.save_pretrained(folder)
    assert content_of(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]

"""Saved model folders: changing their files, and what loading says then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from genpool import PairClassifier
from genpool.errors import FolderError
from genpool.model import load_model

FILES = {"config.json", "model.safetensors", "tokenizer.json", "README.md"}


PAIRS = [("a dog runs .", "the man"), ("two red men", ""), ("🐕", "not a dog")]


def change_json(path: Path, keys: str, value: Any) -> None:
    """Sets a value by its dotted name."""
    content = json.loads(path.read_text(encoding="utf-8"))
    place = content
    *parents, last = keys.split(".")
    for key in parents:
        place = place[key]
    place[last] = value
    path.write_text(json.dumps(content), encoding="utf-8")


def remove_checksums(folder: Path) -> None:
    """Makes a folder one that was changed by hand, whose files are not compared."""
    path = folder / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["checksums"]
    path.write_text(json.dumps(content), encoding="utf-8")


def refusal(folder: Path) -> str:
    """Returns what loading says; both ways of loading must say the same."""
    messages = []
    for load in (PairClassifier.from_pretrained, load_model):
        with pytest.raises(FolderError) as caught:
            load(folder)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0]


def content_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }

"""A folder is read once when a model is loaded, whatever is loaded from it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from genpool import PairClassifier, SentenceEncoder
from genpool.model import load_model
from genpool.saving import weights_file

#: audit hooks cannot be removed; this one counts only while a list is in it
_listening: list[Counter[str]] = []


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _listening:
        _listening[-1][Path(str(arguments[0])).name] += 1


sys.addaudithook(_count)


@pytest.mark.parametrize(
    "load",
    [
        PairClassifier.from_pretrained,
        SentenceEncoder.from_pretrained,
        load_model,
        lambda path: SentenceEncoder.from_pretrained(path, mmap=True),
    ],
    ids=["classifier", "encoder of a classifier", "load_model", "mapped"],
)
def test_every_file_is_opened_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, load: Callable[[Path], object]
) -> None:
    load(folder)  # modules that are imported when they are needed are opened here
    headers: list[Path] = []
    read_header = vars(weights_file.WeightsFile)["open"].__func__

    def counted(cls: type, path: Path) -> object:
        headers.append(path)
        return read_header(cls, path)

    monkeypatch.setattr(weights_file.WeightsFile, "open", classmethod(counted))
    opened: Counter[str] = Counter()
    _listening.append(opened)
    try:
        load(folder)
    finally:
        _listening.pop()
    files = {name: opened[name] for name in ("config.json", "tokenizer.json", "model.safetensors")}
    assert files == {"config.json": 1, "tokenizer.json": 1, "model.safetensors": 1}
    assert headers == [folder / "model.safetensors"]

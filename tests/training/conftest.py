"""Data that small runs learn, and runs without pictures, which take longer than the training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from genpool.training import selection
from tests.helpers.training_runs import reviews, run, without_pictures, write_table


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train, dev and test tables."""
    folder = tmp_path_factory.mktemp("tables")
    for seed, (name, count) in enumerate({"train": 48, "dev": 20, "test": 16}.items()):
        write_table(folder / f"{name}.tsv", reviews(count, seed))
    return folder


@pytest.fixture(autouse=True)
def no_pictures() -> Iterator[None]:
    with without_pictures():
        yield


@pytest.fixture(scope="session")
def finished(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a whole run, pictures too; not to be changed."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    run(tables, out)
    yield out


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that `select` trains in from now on."""
    names: list[str] = []
    original = vars(selection)["train"]

    def train(settings: Any, data: Any, out: Path, *more: Any, **options: Any) -> Any:
        names.append(out.name)
        return original(settings, data, out, *more, **options)

    monkeypatch.setattr(selection, "train", train)
    return names

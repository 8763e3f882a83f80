"""A save that fails at any step leaves the old model or the new one, complete."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from genpool.errors import FolderError
from genpool.saving import storage
from genpool.text import WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS


@pytest.fixture
def write(monkeypatch) -> Callable[[Path, int], None]:
    """Writes a folder in which every file says the same number; does not wait for the disk."""
    rules = WordTokenizer("whitespace")
    monkeypatch.setattr(os, "fsync", lambda file: None)

    def write(path: Path, number: int) -> None:
        words = {word: place for place, word in enumerate([*SPECIAL_WORDS, f"word{number}"])}
        storage.write_folder(
            path,
            {"format": "genpool", "format_version": 1, "precision": "float", "number": number},
            {"weights": torch.full((500,), float(number))},
            rules.to_tokenizers(words, "<unk>"),
            f"card {number}",
        )

    return write


def number_of(path: Path) -> int:
    """The number that all files of a folder agree on."""

    def load(folder: storage.SavedFolder) -> int:
        number: int = folder.config["number"]
        weights = folder.load_weights({"weights": (500,)})["weights"]
        assert torch.equal(weights, torch.full((500,), float(number)))
        assert f"word{number}" in folder.tokenizer.vocabulary
        assert (path / "README.md").read_text() == f"card {number}"
        return number

    return storage.read_folder(path, load)


class Mishap:
    """Lets the file system fail at one step: its n-th call, counted over all functions below.

    when: "before" the call takes place, or "after" it has. dead: all later calls fail as well, so
    that no cleaning up is possible: what is then on disk is what a kill would leave.
    """

    FUNCTIONS = (
        *((os, name) for name in ("mkdir", "rename", "replace", "fsync", "unlink", "rmdir")),
        *((os, name) for name in ("listdir", "scandir", "open", "stat", "lstat", "utime")),
        (io, "open"),
        (builtins, "open"),
        (storage, "save_file"),
    )

    def __init__(self, error: BaseException | None = None, step: int = 0) -> None:
        self.error, self.step = error, step
        self.when, self.dead = "before", False
        self.calls = 0

    def __enter__(self) -> Mishap:
        self.patch = pytest.MonkeyPatch()
        for module, name in self.FUNCTIONS:
            self.patch.setattr(module, name, self.watched(getattr(module, name)))
        return self

    def __exit__(self, *error: object) -> None:
        self.patch.undo()

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            now = self.calls == self.step or (self.dead and self.step < self.calls)
            if not now or self.error is None:
                return function(*args, **options)
            if self.when == "after":
                with suppress(OSError):
                    result = function(*args, **options)
                    if hasattr(result, "close"):
                        result.close()
            raise self.error

        return call


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def fresh(tmp_path: Path, write: Callable[[Path, int], None], number: int) -> Path:
    """A folder of its own with a model, number 1, and a file of somebody else."""
    target = tmp_path / str(number) / "model"
    write(target, 1)
    (target / "mine.txt").write_text("mine")
    (target / "plots").mkdir()
    (target / "plots" / "mine.svg").write_text("mine")
    return target


def steps_of_a_save(tmp_path: Path, write: Callable[[Path, int], None]) -> int:
    target = fresh(tmp_path, write, 0)
    with Mishap() as watch:
        write(target, 2)
    assert number_of(target) == 2
    return watch.calls


@pytest.mark.parametrize("dead", [False, True], ids=["once", "from then on"])
def test_a_failing_disk_at_any_step_leaves_the_old_model_or_the_new(tmp_path, write, dead) -> None:
    steps, outcomes = steps_of_a_save(tmp_path, write), []
    for step in range(1, steps + 1):
        target = fresh(tmp_path, write, step)
        failed = False
        with Mishap(full_disk(), step) as mishap:
            mishap.dead = dead
            try:
                write(target, 2)
            except FolderError as error:
                failed = True
                assert "No space left on device. What was there before is unchanged" in str(error)
        assert dead or target.is_dir()  # even before reading, which recovers what a kill left
        outcomes.append(number_of(target))
        assert outcomes[-1] == (1 if failed else 2), f"step {step}"
        check_that_all_is_well_again(target, write)
    # A failure while the old model is cleaned away behind the new one does no harm.
    assert outcomes.count(1) > 20 and outcomes.count(2) > 10


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("dead", [False, True], ids=["interrupt", "kill"])
def test_an_interrupt_at_any_step_leaves_the_old_model_or_the_new(
    tmp_path, write, when: str, dead: bool
) -> None:
    steps, outcomes = steps_of_a_save(tmp_path, write), []
    for step in range(1, steps + 1):
        target = fresh(tmp_path, write, step)
        with Mishap(KeyboardInterrupt(), step) as mishap, pytest.raises(KeyboardInterrupt):
            mishap.when, mishap.dead = when, dead
            write(target, 2)
        outcomes.append(number_of(target))
        check_that_all_is_well_again(target, write)
    assert outcomes == sorted(outcomes) and outcomes.count(1) > 20 and outcomes.count(2) > 10


def check_that_all_is_well_again(target: Path, write: Callable[[Path, int], None]) -> None:
    """The next save works, keeps the files of others, and leaves nothing beside the folder."""
    assert (target / "mine.txt").read_text() == "mine"
    write(target, 3)
    assert number_of(target) == 3
    assert (
        (target / "mine.txt").read_text() == (target / "plots" / "mine.svg").read_text() == "mine"
    )
    assert [path.name for path in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), full_disk()], ids=repr)
def test_a_first_save_that_fails_leaves_no_folder_or_a_complete_one(tmp_path, write, error) -> None:
    with Mishap() as watch:
        write(tmp_path / "0" / "model", 1)
    kinds = (FolderError, KeyboardInterrupt)
    for step in range(1, watch.calls + 1):
        target = tmp_path / str(step) / "model"
        with Mishap(error, step):
            try:
                write(target, 1)
            except kinds:
                assert not target.exists() or number_of(target) == 1
            else:
                assert number_of(target) == 1
        write(target, 2)
        assert number_of(target) == 2


def test_a_save_after_a_kill_between_the_renames_keeps_the_files_of_others(tmp_path, write) -> None:
    target = fresh(tmp_path, write, 0)
    target.rename(target.with_name(".model.previous"))
    write(target, 2)
    assert number_of(target) == 2 and (target / "mine.txt").read_text() == "mine"


def test_a_relative_path_recovers_like_any_other(tmp_path, write, monkeypatch) -> None:
    target = fresh(tmp_path, write, 0)
    target.rename(target.with_name(".model.previous"))
    monkeypatch.chdir(target.parent)
    assert number_of(Path("model")) == 1

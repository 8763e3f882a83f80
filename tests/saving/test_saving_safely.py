"""Saving over something that exists, on a failing disk, by several processes at once."""

from __future__ import annotations

import builtins
import errno
import io
import multiprocessing
import os
import re
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
import torch

from genpool import PairClassifier, SentenceEncoder
from genpool.errors import FolderError
from genpool.model import load_model
from genpool.saving import storage
from genpool.text import WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS
from tests.helpers.saved_folders import FILES, change_json, content_of

WRITERS, SAVES = 2, 20


def write(path: Path, number: int) -> None:
    """Writes a folder in which every file says the same number."""
    words = {word: place for place, word in enumerate([*SPECIAL_WORDS, f"word{number}"])}
    storage.write_folder(
        path,
        {"precision": "float", "number": number},
        {"weights": torch.full((500,), float(number))},
        WordTokenizer("whitespace").to_tokenizers(words),
        f"card {number}",
    )


@pytest.fixture
def without_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test need not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def number_of(path: Path) -> int:
    """The number that all files of a folder agree on."""

    def load(folder: storage.SavedFolder) -> int:
        number: int = folder.config["number"]
        weights = folder.load_weights({"weights": torch.empty(500, device="meta")})["weights"]
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


def fresh(tmp_path: Path, number: int) -> Path:
    """A folder of its own with a model, number 1, and a file of somebody else."""
    target = tmp_path / str(number) / "model"
    write(target, 1)
    (target / "mine.txt").write_text("mine")
    (target / "plots" / "deep").mkdir(parents=True)
    (target / "plots" / "deep" / "mine.svg").write_text("mine")
    return target


STEPS = [
    (KeyboardInterrupt(), "before", False),
    (KeyboardInterrupt(), "before", True),
    (KeyboardInterrupt(), "after", True),
    (full_disk(), "before", False),
]


@pytest.mark.usefixtures("without_flushing")
@pytest.mark.parametrize(("error", "when", "dead"), STEPS, ids=str)
def test_a_mishap_at_any_step_leaves_the_old_model_or_the_new(
    tmp_path: Path, error: BaseException, when: str, dead: bool
) -> None:
    target, outcomes = fresh(tmp_path, 0), []
    with Mishap() as watch:
        write(target, 2)
    assert number_of(target) == 2
    for step in range(1, watch.calls + 1):
        target, raised = fresh(tmp_path, step), None
        with Mishap(error, step) as mishap:
            mishap.when, mishap.dead = when, dead
            try:
                write(target, 2)
            except (FolderError, KeyboardInterrupt) as caught:
                raised = caught
        outcomes.append(number_of(target))
        if isinstance(error, OSError):
            # A failure while the old model is cleaned away behind the new one does no harm.
            assert outcomes[-1] == (1 if raised else 2), f"step {step}"
            assert not raised or "What was there before is unchanged" in str(raised)
        else:
            assert raised is error
        check_that_all_is_well_again(target)
    assert outcomes.count(1) > 20 and outcomes.count(2) > 10
    assert isinstance(error, OSError) or outcomes == sorted(outcomes)


def check_that_all_is_well_again(target: Path) -> None:
    """The next save works, keeps the files of others, and leaves nothing beside the folder."""
    assert (target / "mine.txt").read_text() == "mine"
    write(target, 3)
    assert number_of(target) == 3
    assert (target / "mine.txt").read_text() == "mine"
    assert (target / "plots" / "deep" / "mine.svg").read_text() == "mine"
    assert [path.name for path in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), full_disk()], ids=repr)
def test_a_first_save_that_fails_leaves_no_folder_or_a_complete_one(
    tmp_path, without_flushing, error
) -> None:
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


def test_a_read_only_disk_and_notes_that_are_not_json_keep_the_old_model(
    folder: Path, monkeypatch
) -> None:
    def refuses(*args, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    model = PairClassifier.from_pretrained(folder)
    before = content_of(folder)
    with monkeypatch.context() as patch:
        for name in ("mkdir", "rename", "unlink", "rmdir"):
            patch.setattr(os, name, refuses)
        with pytest.raises(FolderError, match="could not be written: Read-only file system"):
            model.save_pretrained(folder)
    model.notes = {"data": object()}
    with pytest.raises(TypeError, match="not JSON serializable"):
        model.save_pretrained(folder)
    assert content_of(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_saving_over_what_is_no_model_or_a_newer_one_is_refused(
    sentence_encoder: SentenceEncoder, folder: Path
) -> None:
    change_json(folder / "config.json", "format_version", 4)
    (folder.parent / "notes.txt").write_text("mine")
    refused = {folder: "has format version 4", folder.parent / "notes.txt": "is a file; expected a"}
    refused[folder.parent / "notes.txt" / "model"] = "could not be written"
    other = "contains something else, which saving would replace.*Choose a new or empty folder"
    contents = ('{"model_type": "bert"}', "config.json"), ('{"for', "config.json"), ("x", "a.tex")
    for number, (content, name) in enumerate(contents):
        target = folder.parent / str(number)
        target.mkdir()
        (target / name).write_text(content)
        refused[target] = other
    before = content_of(folder.parent)
    for target, message in refused.items():
        with pytest.raises(FolderError, match=message):
            sentence_encoder.save_pretrained(target)
    assert content_of(folder.parent) == before


@pytest.mark.parametrize("path", [".", "sub/.."])
def test_saving_in_place_of_the_working_folder_is_refused(
    sentence_encoder, tmp_path: Path, monkeypatch, path: str
) -> None:
    inside = tmp_path / "mine" / "deep"
    (inside / "sub").mkdir(parents=True)
    monkeypatch.chdir(inside)
    with pytest.raises(FolderError, match="is the working folder, or contains it"):
        sentence_encoder.save_pretrained(path)
    assert Path.cwd() == inside  # which is gone if the folder was replaced
    sentence_encoder.save_pretrained("sub")  # which is empty
    assert isinstance(load_model("sub"), SentenceEncoder)
    assert {path.name for path in (inside / "sub").iterdir()} == FILES


def test_files_of_others_stay_in_the_folder(sentence_encoder, folder: Path) -> None:
    (folder / "scores.tsv").write_text("93")
    (folder / ".hidden").write_text("x")
    (folder / "nothing").symlink_to("nowhere")
    (folder / "outside").symlink_to(folder.parent)
    os.utime(folder / "scores.tsv", (1000, 1000))
    for _ in range(2):
        sentence_encoder.save_pretrained(folder)
    assert (folder / "scores.tsv").read_text() == "93"
    assert (folder / "scores.tsv").stat().st_mtime == 1000
    assert (folder / ".hidden").read_text() == "x"
    assert str((folder / "nothing").readlink()) == "nowhere"
    assert (folder / "outside").is_symlink() and (folder / "outside").readlink() == folder.parent
    assert isinstance(load_model(folder), SentenceEncoder)


def test_a_link_to_a_folder_stays_one_and_its_target_is_replaced(sentence_encoder, folder) -> None:
    link = folder.parent / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(folder)
    for _ in range(2):
        sentence_encoder.save_pretrained(link)
        assert link.is_symlink()
        assert isinstance(load_model(link), SentenceEncoder)
        assert isinstance(load_model(folder), SentenceEncoder)
    assert [path.name for path in link.parent.iterdir()] == ["link"]
    assert {path.name for path in folder.parent.iterdir()} == {"model", "elsewhere"}


def write_often(target: Path, number: int, start: Barrier) -> None:
    os.fsync = lambda fd: None  # a test need not wait for the disk
    start.wait()
    for _ in range(SAVES):
        write(target, number)


@pytest.mark.slow
def test_savers_and_a_reader_of_one_folder_never_mix_versions(tmp_path: Path) -> None:
    target = tmp_path / "shared" / "model"
    write(target, 0)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WRITERS)
    writers = [
        context.Process(target=write_often, args=(target, 1 + writer, start))
        for writer in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    versions = []
    while any(writer.is_alive() for writer in writers):
        versions.append(number_of(target))
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    assert versions and set(versions) <= {0, 1, 2}
    assert number_of(target) in (1, 2)
    assert [path.name for path in target.parent.iterdir()] == ["model"]

"""Folders that are replaced completely or not at all, by one writer at a time."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from genpool.disk import atomic_folder as module
from genpool.disk.atomic_folder import atomic_folder
from genpool.disk.lock import exclusive, lock_path
from genpool.errors import FolderError

needs_unix = pytest.mark.skipif(os.name == "nt", reason="has no such files")


def allow(folder: Path) -> None:
    """Every folder may be replaced."""


def write(path: Path, text: str, own_files: tuple[str, ...] | None = None) -> None:
    with atomic_folder(path, "the test", allow, own_files) as fresh:
        (fresh / "file.txt").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@needs_unix
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_named_pipe_in_the_place_is_refused_and_stays(
    tmp_path: Path, through_a_link: bool
) -> None:
    pipe = target = tmp_path / "out"
    os.mkfifo(pipe)
    if through_a_link:
        target = tmp_path / "link"
        target.symlink_to("out")
    before = names(tmp_path)
    with pytest.raises(FolderError, match=r"is a named pipe \(FIFO\); expected a folder for the"):
        write(target, "new")
    assert stat.S_ISFIFO(pipe.stat().st_mode) and names(tmp_path) == before


@needs_unix
def test_a_device_in_the_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Should the check be missing, this must not really replace a device.
    monkeypatch.setattr(Path, "rename", lambda *paths: pytest.fail("a device is replaced"))
    with pytest.raises(FolderError, match="/dev/null is a device; expected a folder for the test"):
        write(Path("/dev/null"), "new")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@needs_unix
def test_a_pipe_that_appears_while_the_folder_is_written_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with (
        pytest.raises(FolderError, match="is a named pipe"),
        atomic_folder(target, "the test", allow) as fresh,
    ):
        (fresh / "file.txt").write_text("new")
        os.mkfifo(target)
    assert stat.S_ISFIFO(target.stat().st_mode) and names(tmp_path) == ["out"]


def test_a_foreign_folder_that_appears_while_the_folder_is_written_is_refused(
    tmp_path: Path,
) -> None:
    def refuse(folder: Path) -> None:
        raise FolderError("not ours")

    target = tmp_path / "out"
    with (
        pytest.raises(FolderError, match="not ours"),
        atomic_folder(target, "the test", refuse) as fresh,
    ):
        (fresh / "file.txt").write_text("new")
        target.mkdir()
        (target / "thesis.tex").write_text("years of work")
    assert names(target) == ["thesis.tex"] and names(tmp_path) == ["out"]


@needs_unix
@pytest.mark.parametrize("place", ["pipe", "plots/pipe"])
def test_a_pipe_inside_the_old_folder_is_named_and_the_folder_stays(
    tmp_path: Path, place: str
) -> None:
    target = tmp_path / "out"
    write(target, "old")
    (target / "plots").mkdir()
    os.mkfifo(target / place)
    with pytest.raises(FolderError, match=r"pipe is a named pipe \(FIFO\), which cannot be kept"):
        write(target, "new", own_files=("file.txt",))
    assert (target / "file.txt").read_text() == "old" and names(tmp_path) == ["out"]


@needs_unix
def test_links_in_a_circle_are_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(FolderError, match="could not be written: Too many levels of symbolic"):
        write(tmp_path / "one", "new")
    assert names(tmp_path) == ["one", "two"]


def test_two_writers_of_one_folder_do_not_mix_files(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with atomic_folder(target, "the test", allow) as first:
        (first / "first.txt").write_text("first")
        with atomic_folder(target, "the test", allow) as second:
            assert first != second
            (second / "second.txt").write_text("second")
        assert names(target) == ["second.txt"]
    assert names(target) == ["first.txt"]  # the last one to finish
    assert names(tmp_path) == ["out"]


def test_a_writer_waits_until_another_has_finished_its_replacement(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, "old")
    done = threading.Event()

    def other() -> None:
        write(target, "new")
        done.set()

    with exclusive(target):
        thread = threading.Thread(target=other)
        thread.start()
        assert not done.wait(0.2)
        assert (target / "file.txt").read_text() == "old"
    thread.join()
    assert done.is_set() and (target / "file.txt").read_text() == "new"
    assert names(tmp_path) == ["out"]


def test_a_lock_that_is_never_released_is_an_error_and_not_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genpool.disk.lock.LOCK_SECONDS", 0.05)
    write(tmp_path / "out", "old")
    errors: list[str] = []

    def other() -> None:
        with pytest.raises(FolderError) as caught:
            write(tmp_path / "out", "new")
        errors.append(str(caught.value))

    with exclusive(tmp_path / "out"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert ".out.lock" in errors[0] and "What was there before is unchanged" in errors[0]
    assert (tmp_path / "out" / "file.txt").read_text() == "old"


KILLED = """
import os, signal, sys
from pathlib import Path
from genpool.disk import atomic_folder as module
def kill(*paths):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "between":
    rename, Path.rename = Path.rename, lambda *paths: (rename(*paths), kill())
with module.atomic_folder(sys.argv[1], "the test", lambda folder: None) as fresh:
    (fresh / "file.txt").write_text("half")
    if sys.argv[2] == "writing":
        kill()
"""


@needs_unix
@pytest.mark.parametrize("moment", ["writing", "between"])
def test_what_a_killed_process_left_is_removed_by_the_next_writer(
    tmp_path: Path, moment: str
) -> None:
    target = tmp_path / "out"
    write(target, "old")
    done = subprocess.run([sys.executable, "-c", KILLED, target, moment])
    assert done.returncode == -signal.SIGKILL
    assert target.exists() == (moment == "writing") and len(names(tmp_path)) > 1
    # A lock file of a killed process is no lock.
    assert lock_path(target).exists() == (moment == "between")
    write(target, "new")
    assert (target / "file.txt").read_text() == "new" and names(tmp_path) == ["out"]


def test_a_folder_that_a_reader_holds_open_is_renamed_a_little_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Windows does it: a folder of which a file is open cannot be renamed."""
    write(tmp_path / "out", "old")
    refusals = iter([PermissionError(13, "in use")] * 3)
    rename = Path.rename

    def busy(self: Path, target: Path) -> Path:
        for error in refusals:
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", busy)
    with pytest.raises(FolderError, match="in use"):
        write(tmp_path / "out", "new")
    monkeypatch.setattr(module, "RENAME_TRIES", 5)
    write(tmp_path / "out", "new")
    assert (tmp_path / "out" / "file.txt").read_text() == "new"
    assert next(refusals, None) is None and names(tmp_path) == ["out"]

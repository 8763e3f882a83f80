"""Folders that are replaced completely or not at all, and read in one version."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from genpool.disk import atomic
from genpool.disk.atomic import atomic_folder, previous_path, read_consistently, require_version
from genpool.disk.lock import exclusive, lock_path
from genpool.errors import FolderError

needs_unix = pytest.mark.skipif(os.name == "nt", reason="has no such files")


def allow(folder: Path) -> None:
    """Every folder may be replaced."""


def write(path: Path, text: str, own_files: tuple[str, ...] | None = None) -> None:
    with atomic_folder(path, "the test", allow, own_files) as fresh:
        (fresh / "file.txt").write_text(text)
        (fresh / "other.txt").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@needs_unix
def test_a_named_pipe_in_the_place_is_refused_and_stays(tmp_path: Path) -> None:
    pipe, link = tmp_path / "out", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("out")
    for target in (pipe, link):
        with pytest.raises(
            FolderError, match=r"is a named pipe \(FIFO\); expected a folder for the"
        ):
            write(target, "new")
    assert stat.S_ISFIFO(pipe.stat().st_mode) and names(tmp_path) == ["link", "out"]


def test_what_appears_while_the_folder_is_written_is_refused(tmp_path: Path) -> None:
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
        write(target, "new", own_files=("file.txt", "other.txt"))
    assert (target / "file.txt").read_text() == "old" and names(tmp_path) == ["out"]


def test_two_writers_of_one_folder_do_not_mix_files(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with atomic_folder(target, "the test", allow) as first:
        (first / "first.txt").write_text("first")
        write(target, "second")
        assert names(target) == ["file.txt", "other.txt"]
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
from genpool.disk import atomic
def kill(*paths):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "between":
    rename, Path.rename = Path.rename, lambda *paths: (rename(*paths), kill())
with atomic.atomic_folder(sys.argv[1], "the test", lambda folder: None) as fresh:
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
    monkeypatch.setattr(atomic, "RENAME_TRIES", 5)
    write(tmp_path / "out", "new")
    assert (tmp_path / "out" / "file.txt").read_text() == "new"
    assert next(refusals, None) is None and names(tmp_path) == ["out"]


# --- reading a folder that is replaced in the meantime ------------------------------------------


@pytest.mark.parametrize("replacements", [1, 5])
def test_files_of_two_versions_are_never_mixed(tmp_path: Path, replacements: int) -> None:
    target = tmp_path / "out"
    write(target, "version 0")
    left = iter(range(1, replacements + 1))  # after 5 reads, writers wait for the lock

    def read() -> tuple[str, str]:
        first = (target / "file.txt").read_text()
        for number in left:
            write(target, f"version {number}")
            break
        return first, (target / "other.txt").read_text()

    assert read_consistently(target, read) == (f"version {replacements}",) * 2


@pytest.mark.parametrize("error", [FolderError, RuntimeError])
def test_an_error_is_passed_on_at_once_unless_the_folder_was_replaced(
    tmp_path: Path, error: type[Exception]
) -> None:
    target = tmp_path / "out"
    write(target, "old")
    calls = 0

    def read() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            write(target, "new")
        if calls != 2:
            raise error("damaged")
        return (target / "file.txt").read_text()

    assert read_consistently(target, read) == "new"
    with pytest.raises(error, match="damaged"):
        read_consistently(target, read)
    assert calls == 3


def test_a_reader_between_the_two_renames_waits_for_the_second(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, "old")
    result: list[str] = []
    with exclusive(target):
        target.rename(previous_path(target))
        thread = threading.Thread(
            target=lambda: result.append(read_consistently(target, (target / "file.txt").read_text))
        )
        thread.start()
        thread.join(0.2)
        # The old one must not be put back while its writer is alive.
        assert thread.is_alive() and not target.exists()
        target.mkdir()
        (target / "file.txt").write_text("new")
    thread.join()
    assert result == ["new"]


def test_a_reader_restores_what_a_kill_between_the_renames_left(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, "old")
    target.rename(previous_path(target))
    assert read_consistently(target, (target / "file.txt").read_text) == "old"
    assert names(tmp_path) == ["out"]


def test_a_folder_that_is_not_there_leaves_no_lock_file(tmp_path: Path) -> None:
    def read() -> str:
        assert list(tmp_path.iterdir()) == []
        return (tmp_path / "out" / "file.txt").read_text()

    with pytest.raises(FileNotFoundError):
        read_consistently(tmp_path / "out", read)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_on_which_no_lock_can_be_made_is_read_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    write(target, "old")
    previous_path(target).mkdir()
    opened = os.open

    def read_only(path: str, flags: int, *more: int, **options: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr("genpool.disk.atomic.UNLOCKED_READS", 0)
    assert read_consistently(target, (target / "file.txt").read_text) == "old"


def test_a_version_that_this_genpool_does_not_read_is_refused() -> None:
    for version, newest, allowed in [(0, 1, "1"), (3, 2, "1 to 2"), (True, 1, "1"), ("1", 1, "1")]:
        problem = rf"x has format version {version!r}; this genpool reads {allowed}\."
        with pytest.raises(FolderError, match=problem):
            require_version(version, newest, Path("x"))
    require_version(2, 2, Path("x"))

"""Files and folders that are replaced completely or not at all, and read in one version."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from genpool.disk import atomic
from genpool.disk.atomic import atomic_file, atomic_folder, previous_path, read_consistently
from genpool.disk.lock import exclusive, lock_path
from genpool.errors import DataError, FolderError

needs_unix = pytest.mark.skipif(os.name == "nt", reason="has no such files")
SPECIAL = "is a device, pipe or socket"


def write_file(path: Path | str, text: str = "new") -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text)


def write_folder(path: Path, text: str = "new", own_files: tuple[str, ...] | None = None) -> None:
    with atomic_folder(path, "the test", lambda folder: None, own_files) as fresh:
        (fresh / "file.txt").write_text(text)
        (fresh / "other.txt").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with the content "old"."""
    (tmp_path / "out.txt").write_text("old")
    return tmp_path / "out.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose files have the content "old"."""
    write_folder(tmp_path / "out", "old")
    return tmp_path / "out"


def test_replacing_puts_the_new_file_in_place_at_the_end(file: Path) -> None:
    usual = file.stat().st_mode  # can be read by others
    with file.open() as reader:
        with atomic_file(str(file)) as temporary:
            temporary.write_text("new")
            assert file.read_text() == "old"
            assert temporary.parent == file.parent
        assert reader.read() == "old"  # to its end, by whoever has it open
    assert file.read_text() == "new" and file.stat().st_mode == usual
    assert names(file.parent) == ["out.txt"]


@pytest.mark.parametrize("mishap", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_whatever_goes_wrong_leaves_the_old_file_alone(file: Path, mishap) -> None:
    with pytest.raises((KeyboardInterrupt, DataError)) as caught, atomic_file(file) as temporary:
        temporary.write_text("half")
        raise mishap
    if isinstance(mishap, OSError):
        assert str(caught.value).startswith(f"{file}: cannot be written: No space left")
    assert file.read_text() == "old" and names(file.parent) == ["out.txt"]


def test_two_writers_do_not_disturb_each_other(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "a") as first, atomic_file(tmp_path / "a") as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "a").read_text() == "first"  # the last one to finish
    with atomic_folder(tmp_path / "b", "the test", lambda folder: None) as fresh:
        (fresh / "first.txt").write_text("first")
        write_folder(tmp_path / "b", "second")
        assert names(tmp_path / "b") == ["file.txt", "other.txt"]
    assert names(tmp_path / "b") == ["first.txt"] and names(tmp_path) == ["a", "b"]


@needs_unix
def test_what_is_no_regular_file_is_refused_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    Path("null").symlink_to("/dev/null")
    # Should the check be missing, this must not really replace a device.
    monkeypatch.setattr(Path, "replace", lambda *paths: pytest.fail("it is replaced"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        expected = "folder: is a folder, which would be replaced; expected the name of a file"
        with pytest.raises(DataError, match=expected):
            write_file("folder")
        for name in ("pipe", "link", "socket", "null", "/dev/null"):
            with pytest.raises(DataError, match=f"{name}: {SPECIAL}, .* the name of a file"):
                write_file(name)
        for name in ("pipe", "link"):
            with pytest.raises(FolderError, match=rf"{SPECIAL}; expected a folder for the test"):
                write_folder(Path(name))
        assert stat.S_ISSOCK(Path("socket").stat().st_mode)
    assert Path("folder").is_dir() and stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert names(tmp_path) == ["folder", "link", "null", "pipe", "socket"]


@needs_unix
def test_what_appears_in_the_meantime_is_refused(tmp_path: Path) -> None:
    def refuse(folder: Path) -> None:
        raise FolderError("not ours")

    file, folder = tmp_path / "out.txt", tmp_path / "out"
    with pytest.raises(DataError, match=SPECIAL), atomic_file(file) as temporary:
        temporary.write_text("new")
        os.mkfifo(file)
    with (
        pytest.raises(FolderError, match="not ours"),
        atomic_folder(folder, "the test", refuse) as fresh,
    ):
        (fresh / "file.txt").write_text("new")
        folder.mkdir()
        (folder / "thesis.tex").write_text("years of work")
    assert stat.S_ISFIFO(file.stat().st_mode)
    assert names(folder) == ["thesis.tex"] and names(tmp_path) == ["out", "out.txt"]


@needs_unix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.txt", tmp_path / "link.txt"
    if exists:
        real.write_text("old")
    link.symlink_to("elsewhere/real.txt")
    write_file(link)
    assert link.is_symlink() and str(link.readlink()) == "elsewhere/real.txt"
    assert real.read_text() == "new" and not real.is_symlink()
    assert names(real.parent) == ["real.txt"]


@needs_unix
def test_links_in_a_circle_are_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(DataError, match="one: cannot be written: Too many levels of symbolic"):
        write_file(tmp_path / "one")
    with pytest.raises(FolderError, match="could not be written: Too many levels of symbolic"):
        write_folder(tmp_path / "one")
    assert names(tmp_path) == ["one", "two"]


@needs_unix
@pytest.mark.parametrize("place", ["pipe", "plots/pipe"])
def test_a_pipe_inside_the_old_folder_is_named_and_the_folder_stays(
    folder: Path, place: str
) -> None:
    (folder / "plots").mkdir()
    os.mkfifo(folder / place)
    with pytest.raises(FolderError, match=r"pipe` is a named pipe\. What was there before"):
        write_folder(folder, own_files=("file.txt", "other.txt"))
    assert (folder / "file.txt").read_text() == "old" and names(folder.parent) == ["out"]


@needs_unix
def test_only_what_a_process_that_is_gone_left_of_the_same_file_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with atomic_file(target) as temporary:
        temporary.write_text("half")
        name = temporary.name
    number = str(os.getpid())
    assert number in name
    theirs = tmp_path / name.replace(f"-{number}-", f"-{os.getppid()}-")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    abandoned = tmp_path / name.replace(f"-{number}-", f"-{gone.pid}-")
    other_machine = tmp_path / f".out.txt.00000000-{gone.pid}-abcdef01.tmp"
    other_file = abandoned.with_name(abandoned.name.replace("out", "other"))
    foreign = tmp_path / ".out.txt.tmp"
    for path in (theirs, abandoned, other_machine, other_file, foreign):
        path.write_text("half")
    write_file(target)
    expected = sorted(path.name for path in (target, theirs, other_machine, other_file, foreign))
    assert names(tmp_path) == expected


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
    folder: Path, moment: str
) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, folder, moment])
    assert done.returncode == -signal.SIGKILL
    assert folder.exists() == (moment == "writing") and len(names(folder.parent)) > 1
    # A lock file of a killed process is no lock.
    assert lock_path(folder).exists() == (moment == "between")
    write_folder(folder)
    assert (folder / "file.txt").read_text() == "new" and names(folder.parent) == ["out"]


def test_a_lock_that_is_never_released_is_an_error_and_not_a_hang(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genpool.disk.lock.LOCK_SECONDS", 0.05)
    errors: list[str] = []

    def other() -> None:
        with pytest.raises(FolderError) as caught:
            write_folder(folder)
        errors.append(str(caught.value))

    with exclusive(folder):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert ".out.lock" in errors[0] and "What was there before is unchanged" in errors[0]
    assert (folder / "file.txt").read_text() == "old"


def test_a_folder_that_a_reader_holds_open_is_renamed_a_little_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Windows does it: a folder of which a file is open cannot be renamed."""
    refusals = iter([PermissionError(13, "in use")] * 3)
    rename = Path.rename

    def busy(self: Path, target: Path) -> Path:
        for error in refusals:
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", busy)
    with pytest.raises(FolderError, match="in use"):
        write_folder(folder)
    monkeypatch.setattr(atomic, "RENAME_TRIES", 5)
    write_folder(folder)
    assert (folder / "file.txt").read_text() == "new"
    assert next(refusals, None) is None and names(folder.parent) == ["out"]


def test_files_of_two_versions_are_never_mixed(folder: Path) -> None:
    versions = iter(["new"])

    def read() -> tuple[str, str]:
        first = (folder / "file.txt").read_text()
        for version in versions:
            write_folder(folder, version)
        return first, (folder / "other.txt").read_text()

    assert read_consistently(folder, read) == ("new", "new")


@pytest.mark.parametrize("error", [FolderError, RuntimeError])
def test_an_error_is_passed_on_at_once_unless_the_folder_was_replaced(
    folder: Path, error: type[Exception]
) -> None:
    calls = 0

    def read() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            write_folder(folder)
        if calls != 2:
            raise error("damaged")
        return (folder / "file.txt").read_text()

    assert read_consistently(folder, read) == "new"
    with pytest.raises(error, match="damaged"):
        read_consistently(folder, read)
    assert calls == 3


def test_a_reader_between_the_two_renames_waits_for_the_second(folder: Path) -> None:
    result: list[str] = []
    read = (folder / "file.txt").read_text
    with exclusive(folder):
        folder.rename(previous_path(folder))
        thread = threading.Thread(target=lambda: result.append(read_consistently(folder, read)))
        thread.start()
        thread.join(0.2)
        # The old one must not be put back while its writer is alive.
        assert thread.is_alive() and not folder.exists()
        folder.mkdir()
        (folder / "file.txt").write_text("new")
    thread.join()
    assert result == ["new"]


def test_a_folder_that_is_not_there_leaves_no_lock_file(tmp_path: Path) -> None:
    def read() -> str:
        assert list(tmp_path.iterdir()) == []
        return (tmp_path / "out" / "file.txt").read_text()

    with pytest.raises(FileNotFoundError):
        read_consistently(tmp_path / "out", read)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_on_which_no_lock_can_be_made_is_read_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    previous_path(folder).mkdir()
    opened = os.open

    def read_only(path: str, flags: int, *more: int, **options: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", read_only)
    # As if the folder was not there at first, between the two renames.
    monkeypatch.setattr(atomic, "folder_identity", lambda folder: None)
    assert read_consistently(folder, (folder / "file.txt").read_text) == "old"

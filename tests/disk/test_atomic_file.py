"""Files that are replaced completely or not at all, and only if they are regular files."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from genpool.disk.atomic_file import atomic_file
from genpool.errors import DataError

needs_unix = pytest.mark.skipif(os.name == "nt", reason="has no such files")


def write(path: Path | str, text: str = "new") -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_replacing_puts_the_new_file_in_place_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with atomic_file(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
        assert temporary.parent == tmp_path
    assert target.read_text() == "new"
    assert names(tmp_path) == ["out.txt"]


def test_whoever_is_reading_the_old_file_reads_it_to_its_end(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with target.open() as reader:
        with atomic_file(target) as temporary:
            temporary.write_text("new")
        assert reader.read() == "old"


def test_replacing_makes_a_file_that_was_not_there(tmp_path: Path) -> None:
    with atomic_file(str(tmp_path / "out.txt")) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "out.txt").read_text() == "new"


@pytest.mark.parametrize("mishap", [KeyboardInterrupt, ValueError])
def test_whatever_goes_wrong_leaves_the_old_file_alone(tmp_path: Path, mishap) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(mishap), atomic_file(target) as temporary:
        temporary.write_text("half")
        raise mishap
    assert target.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


def test_a_full_disk_is_reported_with_the_path_and_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with (
        pytest.raises(DataError, match="cannot be written: No space left") as caught,
        atomic_file(target) as temporary,
    ):
        temporary.write_text("half")
        raise OSError(28, "No space left on device")
    assert caught.value.path == target
    assert target.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


def test_a_missing_folder_is_reported_with_the_path(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "out.txt"
    with (
        pytest.raises(DataError, match="cannot be written") as caught,
        atomic_file(target) as temporary,
    ):
        temporary.write_text("new")
    assert str(target) in str(caught.value)


def test_the_new_file_can_be_read_by_others_as_usual(tmp_path: Path) -> None:
    usual = tmp_path / "usual.txt"
    usual.write_text("x")
    with atomic_file(tmp_path / "out.txt") as temporary:
        temporary.write_text("x")
    assert (tmp_path / "out.txt").stat().st_mode == usual.stat().st_mode


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with atomic_file(target) as first, atomic_file(target) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert target.read_text() == "first"  # the last one to finish
    assert names(tmp_path) == ["out.txt"]


# --- what is in the place ------------------------------------------------------------------------


@needs_unix
def test_a_named_pipe_is_refused_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "out.npy"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match=r"out\.npy: is a named pipe \(FIFO\), which would be"):
        write(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and names(tmp_path) == ["out.npy"]


@needs_unix
def test_a_socket_is_refused_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("out.npy")
        with pytest.raises(DataError, match="is a socket"):
            write("out.npy")
        assert stat.S_ISSOCK(Path("out.npy").stat().st_mode) and names(tmp_path) == ["out.npy"]


@needs_unix
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_device_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through_a_link: bool
) -> None:
    path = tmp_path / "link" if through_a_link else Path("/dev/null")
    if through_a_link:
        path.symlink_to("/dev/null")
    # Should the check be missing, this must not really replace a device.
    monkeypatch.setattr(Path, "replace", lambda *paths: pytest.fail("a device is replaced"))
    with pytest.raises(DataError, match=r"is a device, .* expected the name of a file"):
        write(path)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_folder_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "out.npy").mkdir()
    with pytest.raises(DataError, match="is a folder, which would be replaced"):
        write(tmp_path / "out.npy")
    assert (tmp_path / "out.npy").is_dir() and names(tmp_path) == ["out.npy"]


@needs_unix
def test_a_pipe_that_appears_while_the_file_is_written_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with pytest.raises(DataError, match="is a named pipe"), atomic_file(target) as temporary:
        temporary.write_text("new")
        os.mkfifo(target)
    assert stat.S_ISFIFO(target.stat().st_mode) and names(tmp_path) == ["out.txt"]


@needs_unix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    real = tmp_path / "elsewhere" / "real.txt"
    if exists:
        real.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to("elsewhere/real.txt")
    write(link)
    assert link.is_symlink() and str(link.readlink()) == "elsewhere/real.txt"
    assert real.read_text() == "new" and not real.is_symlink()
    assert names(real.parent) == ["real.txt"]


@needs_unix
def test_links_in_a_circle_are_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(DataError, match="one: cannot be written: Too many levels of symbolic"):
        write(tmp_path / "one")
    assert names(tmp_path) == ["one", "two"]


# --- what a kill leaves --------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from genpool.disk.atomic_file import atomic_file
with atomic_file(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@needs_unix
def test_what_a_killed_process_left_is_removed_by_the_next_write_of_the_same_file(
    tmp_path: Path,
) -> None:
    for name in ("out.txt", "other.txt"):
        done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / name])
        assert done.returncode == -signal.SIGKILL
    left = names(tmp_path)
    assert [name.split(".")[1] for name in left] == ["other", "out"]
    write(tmp_path / "out.txt")
    assert names(tmp_path) == [left[0], "out.txt"]  # that of the other file is not ours


@needs_unix
def test_what_a_living_process_is_writing_is_left_alone(tmp_path: Path) -> None:
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
    foreign = tmp_path / ".out.txt.tmp"
    for path in (theirs, abandoned, other_machine, foreign):
        path.write_text("half")
    write(target)
    expected = sorted(path.name for path in (target, theirs, other_machine, foreign))
    assert names(tmp_path) == expected

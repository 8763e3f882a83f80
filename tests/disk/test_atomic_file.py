"""Files that are replaced completely or not at all, and only if they are regular files."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from genpool.disk.atomic import atomic_file
from genpool.errors import DataError

needs_unix = pytest.mark.skipif(os.name == "nt", reason="has no such files")


def write(path: Path | str, text: str = "new") -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file with the content "old"."""
    path = tmp_path / "out.txt"
    path.write_text("old")
    return path


def test_replacing_puts_the_new_file_in_place_at_the_end(target: Path) -> None:
    usual = target.stat().st_mode  # can be read by others
    with target.open() as reader:
        with atomic_file(str(target)) as temporary:
            temporary.write_text("new")
            assert target.read_text() == "old"
            assert temporary.parent == target.parent
        assert reader.read() == "old"  # to its end, by whoever has it open
    assert target.read_text() == "new" and target.stat().st_mode == usual
    assert names(target.parent) == ["out.txt"]


@pytest.mark.parametrize("mishap", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_whatever_goes_wrong_leaves_the_old_file_alone(target: Path, mishap) -> None:
    with pytest.raises((KeyboardInterrupt, DataError)) as caught, atomic_file(target) as temporary:
        temporary.write_text("half")
        raise mishap
    if isinstance(mishap, OSError):
        assert str(caught.value).startswith(f"{target}: cannot be written: No space left")
    assert target.read_text() == "old" and names(target.parent) == ["out.txt"]


def test_a_missing_folder_is_reported_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.out\.txt: cannot be written"):
        write(tmp_path / "nowhere" / "out.txt")


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
def test_a_folder_a_named_pipe_and_a_socket_are_refused_and_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    Path("folder").mkdir()
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name, kind in [
            ("folder", "a folder, which would be replaced; expected the name of a file"),
            ("pipe", r"a named pipe \(FIFO\)"),
            ("socket", "a socket"),
        ]:
            with pytest.raises(DataError, match=rf"{name}: is {kind}"):
                write(name)
        assert Path("folder").is_dir() and stat.S_ISFIFO(Path("pipe").stat().st_mode)
        assert stat.S_ISSOCK(Path("socket").stat().st_mode)
    assert names(tmp_path) == ["folder", "pipe", "socket"]


@needs_unix
def test_a_device_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    # Should the check be missing, this must not really replace a device.
    monkeypatch.setattr(Path, "replace", lambda *paths: pytest.fail("a device is replaced"))
    for path in (link, "/dev/null"):
        with pytest.raises(DataError, match=r"is a device, .* expected the name of a file"):
            write(path)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


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
    write(target)
    expected = sorted(path.name for path in (target, theirs, other_machine, other_file, foreign))
    assert names(tmp_path) == expected

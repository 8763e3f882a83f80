"""Reading a folder that is replaced in the meantime: one version, never two."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from genpool.disk.atomic_folder import atomic_folder
from genpool.disk.folders import previous_path, read_consistently, recover, require_version
from genpool.disk.lock import exclusive
from genpool.errors import FolderError


def write(path: Path, text: str) -> None:
    with atomic_folder(path, "the test", lambda folder: None) as fresh:
        (fresh / "a.txt").write_text(text)
        (fresh / "b.txt").write_text(text)


def test_a_folder_that_nobody_replaces_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "out", "one")
    calls: list[str] = []
    assert read_consistently(tmp_path / "out", lambda: calls.append("read")) is None
    assert calls == ["read"]


@pytest.mark.parametrize("replacements", [1, 3, 20])
def test_files_of_two_versions_are_never_mixed(tmp_path: Path, replacements: int) -> None:
    target = tmp_path / "out"
    write(target, "version 0")
    left = iter(range(1, replacements + 1))
    reads = 0

    def read() -> tuple[str, str]:
        nonlocal reads
        reads += 1
        first = (target / "a.txt").read_text()
        number = next(left, None) if reads <= 5 else None  # later, writers wait for the lock
        if number is not None:
            write(target, f"version {number}")
        return first, (target / "b.txt").read_text()

    first, second = read_consistently(target, read)
    assert first == second == f"version {min(replacements, 5)}"


@pytest.mark.parametrize("error", [FolderError, FileNotFoundError, RuntimeError, ValueError])
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
        return (target / "a.txt").read_text()

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
            target=lambda: result.append(
                read_consistently(target, lambda: (target / "a.txt").read_text())
            )
        )
        thread.start()
        thread.join(0.2)
        # The old one must not be put back while its writer is alive.
        assert thread.is_alive() and not target.exists()
        target.mkdir()
        (target / "a.txt").write_text("new")
    thread.join()
    assert result == ["new"]


def test_a_reader_restores_what_a_kill_between_the_renames_left(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, "old")
    target.rename(previous_path(target))
    assert read_consistently(target, lambda: (target / "a.txt").read_text()) == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    recover(target)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_is_not_there_leaves_no_lock_file(tmp_path: Path) -> None:
    def read() -> str:
        assert list(tmp_path.iterdir()) == []
        return (tmp_path / "out" / "a.txt").read_text()

    with pytest.raises(FileNotFoundError):
        read_consistently(tmp_path / "out", read)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_on_which_no_lock_can_be_made_is_read_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    write(target, "old")
    previous_path(target).mkdir()

    def missing_at_first() -> str:
        return (target / "a.txt").read_text()

    opened = os.open

    def read_only(path: str, flags: int, *more: int, **options: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr("genpool.disk.folders.UNLOCKED_READS", 0)
    assert read_consistently(target, missing_at_first) == "old"


@pytest.mark.parametrize(("newest", "allowed"), [(1, "reads 1\\."), (2, "reads 1 to 2\\.")])
@pytest.mark.parametrize("version", [0, 3, True, 1.0, "1", None])
def test_a_version_that_this_genpool_does_not_read_is_refused(
    version: object, newest: int, allowed: str
) -> None:
    with pytest.raises(FolderError, match=rf"x has format version {version!r}; .* {allowed}"):
        require_version(version, newest, Path("x"))
    require_version(newest, newest, Path("x"))

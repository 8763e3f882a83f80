"""Folders that are replaced completely or not at all."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from genpool.disk.file_kinds import FILE, FOLDER, kind_of, resolve_links
from genpool.disk.folders import previous_path, recover, recover_locked
from genpool.disk.lock import exclusive
from genpool.disk.temporary import temporary_path
from genpool.errors import FolderError

#: Windows does not rename a folder of which a reader has a file open; readers are soon done
RENAME_TRIES = 200 if os.name == "nt" else 1
RENAME_SECONDS = 0.01


@contextmanager
def atomic_folder(
    path: str | Path,
    what: str,
    check: Callable[[Path], None],
    own_files: Collection[str] | None = None,
) -> Iterator[Path]:
    """Yields a new folder to write files into; at the end it takes the place of `path`.

    Whatever goes wrong in between leaves `path` unchanged. A process that is killed between the two
    renames leaves the old folder as `.NAME.previous`, from where `recover` restores it. Several
    processes may write the same folder: the last one to finish wins, and no files are mixed. A link
    stays a link, and the folder that it leads to is replaced.

    Args:
        path: the folder to write.
        what: what is written, for errors: "the model".
        check: raises FolderError if the folder at `path` must not be replaced. It is called before
            the work starts, and again at the end; never for an empty folder.
        own_files: the names of the files that belong to what is written. All other files of the old
            folder are kept. Default: None, which keeps none.

    Raises:
        FolderError: there is something other than a folder at `path`, `check` refuses, or it cannot
            be written.
    """
    output = target = Path(path)
    try:
        target = resolve_links(output)
        recover(target)
        _require_place(output, target, what)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            with exclusive(target):
                _require_replaceable(output, target, what, check)
        with temporary_path(target, "saving") as fresh:
            fresh.mkdir()
            yield fresh
            for file in fresh.iterdir():
                _flush(file)
            with exclusive(target):
                recover_locked(target)
                _require_replaceable(output, target, what, check)
                if own_files is not None:
                    _carry_over(target, fresh, own_files)
                _exchange(fresh, target)
    except OSError as error:
        raise FolderError(
            f"{target}: {what} could not be written: {_reason(error)}. What was there before is "
            "unchanged."
        ) from error


def _require_place(output: Path, target: Path, what: str) -> None:
    kind = kind_of(output)
    if kind not in (None, FOLDER):
        remedy = "" if kind == FILE else ", which would be replaced: choose another name"
        raise FolderError(f"{output} is {kind}; expected a folder for {what}{remedy}.")
    with suppress(FileNotFoundError):  # the working folder may itself be gone
        if Path.cwd().is_relative_to(target):
            raise FolderError(
                f"{target} is the working folder, or contains it; {what} would take its place. "
                "Choose a folder beside it or below it."
            )


def _require_replaceable(
    output: Path, target: Path, what: str, check: Callable[[Path], None]
) -> None:
    _require_place(output, target, what)
    if target.is_dir() and any(target.iterdir()):
        check(target)


def _exchange(fresh: Path, target: Path) -> None:
    """Puts the new folder in the place of the old one, which is removed."""
    previous = previous_path(target)
    shutil.rmtree(previous, ignore_errors=True)
    try:
        if target.exists():
            _rename(target, previous)
        _rename(fresh, target)
    except BaseException:
        with suppress(OSError):  # the disk may be gone; reading tries again
            recover_locked(target)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def _rename(source: Path, target: Path) -> None:
    for _ in range(RENAME_TRIES - 1):
        with suppress(PermissionError):
            source.rename(target)
            return
        time.sleep(RENAME_SECONDS)
    source.rename(target)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _carry_over(old: Path, fresh: Path, own_files: Collection[str]) -> None:
    """Copies the files that somebody else put into the old folder."""
    for path in old.iterdir() if old.is_dir() else ():
        if path.name in own_files or (fresh / path.name).exists():
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, fresh / path.name, symlinks=True, copy_function=_copy)
        else:
            _copy(path, fresh / path.name)


def _copy(source: str | Path, target: str | Path) -> None:
    kind = None if Path(source).is_symlink() else kind_of(Path(source))
    if kind not in (None, FILE):  # to read a device or a pipe may never end
        raise FolderError(f"{source} is {kind}, which cannot be kept: move it out of the folder.")
    shutil.copy2(source, target, follow_symlinks=False)


def _reason(error: OSError) -> str:
    if isinstance(error, shutil.Error):  # a list of (source, target, reason)
        return "; ".join(str(reason) for _, _, reason in error.args[0])
    return error.strerror or str(error)

"""A folder that appears only when it is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from genpool.errors import FolderError


@contextmanager
def atomic_folder(
    path: str | Path,
    what: str,
    check: Callable[[Path], None],
    own_files: Collection[str] | None = None,
) -> Iterator[Path]:
    """Gives a new folder beside `path` to write files into; it takes its place at the end.

    Whatever goes wrong in between leaves `path` as it was. A kill between the two renames leaves
    the old folder under `.NAME.previous`, from where `recover` restores it.

    what: what is written, for errors ("the model"). check: raises FolderError where the folder in
    the place is one that must not be replaced. own_files: files by other names that somebody put
    into the old folder stay; None lets nothing of it stay.
    """
    target = Path(path).resolve()  # a link stays one: what it leads to is replaced
    # Always the same name: what a kill left of an earlier try is cleaned away by the next one.
    fresh, previous = target.parent / f".{target.name}.saving", _previous(target)
    try:
        recover(target)
        _check_place(target, what)
        if target.is_dir() and any(target.iterdir()):
            check(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        yield fresh
        for each in fresh.iterdir():
            _flush(each)
        if own_files is not None:
            _carry_over(target, fresh, own_files)
        shutil.rmtree(previous, ignore_errors=True)
        if target.exists():
            target.rename(previous)
        fresh.rename(target)
        shutil.rmtree(previous, ignore_errors=True)
    except OSError as error:
        with suppress(OSError):  # the disk may be gone; reading tries again
            recover(target)
        raise FolderError(
            f"{target}: {what} could not be written: {_reason(error)}. What was there before is "
            "unchanged."
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def require_version(version: object, newest: int, path: Path) -> None:
    """Raises FolderError for a file whose format is newer than this genpool reads."""
    if type(version) is not int or not 1 <= version <= newest:
        raise FolderError(
            f"{path} has format version {version!r}; this genpool reads 1 to {newest}. "
            "A newer genpool wrote it: pip install --upgrade genpool."
        )


def recover(target: Path) -> None:
    """Finishes what a kill between the two renames left."""
    previous = _previous(target)
    if previous.is_dir() and not target.exists():
        previous.rename(target)


def _check_place(target: Path, what: str) -> None:
    if target.is_file():
        raise FolderError(f"{target} is a file; expected a folder for {what}.")
    with suppress(FileNotFoundError):  # the working folder may itself be gone
        if Path.cwd().is_relative_to(target):
            raise FolderError(
                f"{target} is the working folder, or holds it; {what} would take its place. Choose "
                "a folder beside it or below it."
            )


def _previous(target: Path) -> Path:
    return target.parent / f".{target.name}.previous"


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _carry_over(old: Path, fresh: Path, own_files: Collection[str]) -> None:
    for each in old.iterdir() if old.is_dir() else ():
        if each.name in own_files or (fresh / each.name).exists():
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.copytree(each, fresh / each.name, symlinks=True)
        else:
            shutil.copy2(each, fresh / each.name, follow_symlinks=False)


def _reason(error: OSError) -> str:
    if isinstance(error, shutil.Error):  # a list of (source, target, reason)
        return "; ".join(str(reason) for _, _, reason in error.args[0])
    return error.strerror or str(error)

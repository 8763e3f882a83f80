"""Files and folders that are replaced completely or not at all.

A file is written under a temporary name beside it and then renamed. A folder is replaced by two
renames under a lock, NAME -> .NAME.previous and .NAME.….saving -> NAME; a reader could meet none,
or files of both versions: `read_consistently` reads one of them.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from genpool.disk.lock import exclusive, lock_path
from genpool.errors import DataError, FolderError

#: ends the name of a file that is not finished
FILE_SUFFIX = "tmp"
#: Windows does not rename a folder of which a reader has a file open; readers are soon done
RENAME_TRIES = 200 if os.name == "nt" else 1

FILE, FOLDER, SPECIAL = "a file", "a folder", "a device, pipe or socket"
#: temporary paths that this process is using now
_in_use: set[Path] = set()

Content = TypeVar("Content")


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path to write to; at the end it takes the place of the file at `path`.

    Whatever goes wrong in between leaves `path` unchanged. A link stays a link. DataError if there
    is something other than a file at `path`, or if it cannot be written.
    """
    output = Path(path)
    try:
        _require_file(output)
        target = resolve_links(output) if output.is_symlink() else output
        with temporary_path(target, FILE_SUFFIX) as temporary:
            yield temporary
            _flush(temporary)
            _require_file(output)
            temporary.replace(target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", output) from error


def write_text_file(path: str | Path, text: str) -> None:
    """Writes a text file as `atomic_file` does."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _require_file(output: Path) -> None:
    if (kind := _kind_of(output)) not in (None, FILE):
        problem = f"is {kind}, which would be replaced; expected the name of a file: choose another"
        raise DataError(problem, output)


@contextmanager
def atomic_folder(
    path: str | Path,
    what: str,
    check: Callable[[Path], object],
    own_files: Collection[str] | None = None,
) -> Iterator[Path]:
    """Yields a new folder to write files into; at the end it takes the place of `path`.

    As `atomic_file`, for several processes too: the last one to finish wins. After a kill between
    the two renames, the next one to read or write restores the old folder, `.NAME.previous`.

    FolderError if it cannot be; `what` is its name for what is written. `check` raises one if a
    folder must not be replaced: it is called before the work and at the end, unless the folder is
    empty. Files of the old folder are kept unless they are in `own_files`; None keeps none.
    """
    output, target = Path(path), resolve_links(Path(path))
    try:
        read_consistently(target, lambda: _require_folder(output, target, what, check))
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(target, "saving") as fresh:
            fresh.mkdir()
            yield fresh
            for file in fresh.iterdir():
                _flush(file)
            with exclusive(target):
                _restore(target)
                _require_folder(output, target, what, check)
                if own_files is not None and target.is_dir():
                    _copy_other_files(target, fresh, own_files)
                _exchange(fresh, target)
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, shutil.Error):  # a list of (source, target, reason)
            reason = "; ".join(str(reason) for _, _, reason in error.args[0])
        raise FolderError(
            f"{target}: {what} could not be written: {reason}. What was there before is unchanged."
        ) from error


def _require_folder(output: Path, target: Path, what: str, check: Callable[[Path], object]) -> None:
    kind = _kind_of(output)
    if kind not in (None, FOLDER):
        remedy = ", which would be replaced: choose another name" if kind == SPECIAL else ""
        raise FolderError(f"{output} is {kind}; expected a folder for {what}{remedy}.")
    with suppress(FileNotFoundError):  # the working folder may itself be gone
        if Path.cwd().is_relative_to(target):
            raise FolderError(
                f"{target} is the working folder, or contains it; {what} would take its place. "
                "Choose a folder beside it or below it."
            )
    if target.is_dir() and any(target.iterdir()):
        check(target)


def _copy_other_files(old: Path, fresh: Path, own_files: Collection[str]) -> None:
    """Copies the files that somebody else put into the old folder."""
    written = {*own_files, *(file.name for file in fresh.iterdir())}

    def ignored(folder: str, names: list[str]) -> set[str]:
        return written if Path(folder) == old else set()

    shutil.copytree(old, fresh, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    os.utime(fresh)  # which has the time of the old one now: `folder_identity` must differ


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
            _restore(target)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def _rename(source: Path, target: Path) -> None:
    for _ in range(RENAME_TRIES - 1):
        with suppress(PermissionError):
            source.rename(target)
            return
        time.sleep(0.01)
    source.rename(target)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def read_consistently(path: str | Path, read: Callable[[], Content]) -> Content:
    """Returns `read()`, called again where the folder was replaced in the meantime.

    An exception of it is raised only if the folder was not replaced while it ran.
    """
    folder = Path(path)
    before = folder_identity(folder)
    if before is not None:
        try:
            content = read()
        except Exception:  # a file that is missing or of another version can raise anything
            if folder_identity(folder) == before:
                raise
        else:
            if folder_identity(folder) == before:
                return content
    target = resolve_links(folder)
    # Where no folder is, no lock file is left; on a read-only disk, nobody replaces one.
    if any(place.exists() for place in (target, previous_path(target), lock_path(target))):
        with suppress(OSError), exclusive(target):  # writers wait for this second reading
            _restore(target)
            return read()
    return read()


def _restore(target: Path) -> None:
    """Restores what a process left as `.NAME.previous` if it was killed; needs the lock."""
    if previous_path(target).is_dir() and not target.exists():
        previous_path(target).rename(target)


def previous_path(target: Path) -> Path:
    """Returns the place of the old folder during the replacement."""
    return target.with_name(f".{target.name}.previous")


def folder_identity(folder: Path) -> tuple[int, int, int] | None:
    """Returns what two versions of a folder differ in; None where no folder can be read."""
    with suppress(OSError):  # there is none, or its name is too long
        status = folder.stat()
        # The file system gives the number of a removed folder to a new one.
        return status.st_dev, status.st_ino, status.st_mtime_ns
    return None


def _kind_of(path: Path) -> str | None:
    """Returns the kind of what a path leads to, or None if there is nothing."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER}.get(stat.S_IFMT(mode), SPECIAL)


def resolve_links(path: Path) -> Path:
    """Returns the absolute path that links lead to."""
    return Path(os.path.realpath(path))  # `Path.resolve` raises RuntimeError for links in a circle


@contextmanager
def temporary_path(target: Path, suffix: str) -> Iterator[Path]:
    """Yields an unused path beside `target`; what is there at the end is removed.

    Its name, .NAME.MACHINE-PROCESS-RANDOM.SUFFIX, says whose it is: the next writer of the same
    output removes what processes of this machine left that are gone.
    """
    # Process ids mean nothing on another machine that shares the disk.
    start = f".{target.name}.{zlib.crc32(platform.node().encode()):08x}"
    path = target.with_name(f"{start}-{os.getpid()}-{secrets.token_hex(4)}.{suffix}")
    abandoned = re.compile(rf"{re.escape(start)}-(\d+)-[0-9a-f]+\.{suffix}")
    _in_use.add(path)
    try:
        with suppress(OSError):  # a folder that cannot be listed is reported by the writing itself
            for other in list(target.parent.iterdir()):
                if (match := abandoned.fullmatch(other.name)) and other not in _in_use:
                    process = int(match[1])
                    if process == os.getpid() or not is_running(process):
                        _remove(other)
        yield path
    finally:
        _in_use.discard(path)
        _remove(path)


def _remove(path: Path) -> None:
    """Removes a file or a folder; what cannot be removed now is left to the next writer."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def is_running(process: int) -> bool:
    """Returns whether there is a process with this id."""
    if sys.platform == "win32":
        import ctypes

        query_limited_information, still_active = 0x1000, 259
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(query_limited_information, False, process)
        code = ctypes.c_ulong()
        known = handle and kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.CloseHandle(handle)
        return bool(known) and code.value == still_active
    try:
        os.kill(process, 0)  # asks only
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        pass
    return True

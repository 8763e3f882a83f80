"""Files and folders that are replaced completely or not at all.

A file is written under a temporary name beside it and then renamed. A folder is replaced by two
renames, under a lock:

    NAME -> .NAME.previous, .NAME.….saving -> NAME

Between them there is no folder, and a reader that opens one file after the other may meet both
versions: `read_consistently` reads one of them.
"""

from __future__ import annotations

import errno
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

#: how the name of a file ends that is not finished
FILE_SUFFIX = "tmp"
#: Windows does not rename a folder of which a reader has a file open; readers are soon done
RENAME_TRIES = 200 if os.name == "nt" else 1
#: times a folder is read before its writers are asked to wait
UNLOCKED_READS = 5

FILE, FOLDER = "a file", "a folder"
_KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: FOLDER,
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
}
#: temporary paths that this process is using now
_in_use: set[Path] = set()

Content = TypeVar("Content")


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path to write to; at the end it takes the place of `path`.

    Whatever goes wrong in between (a full disk, Ctrl-C) leaves `path` unchanged. A link stays a
    link, and the file that it leads to is replaced. DataError if there is a folder or a special
    file (a device, a named pipe, a socket) at `path`, or if it cannot be written.
    """
    output = Path(path)

    def require_replaceable() -> None:
        if (kind := kind_of(output)) not in (None, FILE):
            problem = f"is {kind}, which would be replaced; expected the name of a file: choose "
            raise DataError(f"{problem}another", output)

    try:
        require_replaceable()
        target = resolve_links(output) if output.is_symlink() else output
        with temporary_path(target, FILE_SUFFIX) as temporary:
            yield temporary
            _flush(temporary)
            require_replaceable()
            temporary.replace(target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", output) from error


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

    FolderError if `path` is something other than a folder; it calls what is written by `what`, such
    as "the model". `check` raises one if the folder must not be replaced: it is called before the
    work starts and again at the end, never for an empty folder. Files of the old folder that are
    not named in `own_files` are kept; None keeps none.
    """
    output = target = Path(path)
    try:
        target = resolve_links(output)
        recover(target)
        _require_place(output, target, what)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            with exclusive(target):
                _require_place(output, target, what, check)
        with temporary_path(target, "saving") as fresh:
            fresh.mkdir()
            yield fresh
            for file in fresh.iterdir():
                _flush(file)
            with exclusive(target):
                _recover_locked(target)
                _require_place(output, target, what, check)
                if own_files is not None:
                    _keep_other_files(target, fresh, own_files)
                _exchange(fresh, target)
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, shutil.Error):  # a list of (source, target, reason)
            reason = "; ".join(str(reason) for _, _, reason in error.args[0])
        raise FolderError(
            f"{target}: {what} could not be written: {reason}. What was there before is unchanged."
        ) from error


def _require_place(
    output: Path, target: Path, what: str, check: Callable[[Path], None] | None = None
) -> None:
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
    if check is not None and target.is_dir() and any(target.iterdir()):
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
            _recover_locked(target)
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


def _keep_other_files(old: Path, fresh: Path, own_files: Collection[str]) -> None:
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


def read_consistently(path: str | Path, read: Callable[[], Content]) -> Content:
    """Returns `read()`, called again where the folder was replaced in the meantime.

    An exception of it is raised only if the folder was not replaced while it ran.
    """
    folder = Path(path)
    for _ in range(UNLOCKED_READS):
        before = folder_identity(folder)
        if before is None and _is_being_replaced(folder):
            break
        try:
            content = read()
        except Exception:
            # A file that is missing or of another version can make a library raise anything: torch
            # has a RuntimeError for it.
            if before is not None and folder_identity(folder) == before:
                raise
        else:
            if folder_identity(folder) == before:
                return content
    target = resolve_links(folder)
    if not _is_being_replaced(folder) and not target.exists():
        return read()  # raises what a missing folder raises, and leaves no lock file behind
    with suppress(OSError), exclusive(target):
        _recover_locked(target)
        return read()
    return read()  # on a disk that is read-only, nobody replaces the folder


def recover(target: Path) -> None:
    """Restores the folder that a process left as `.NAME.previous` if it was killed in between."""
    if _is_lost(target):
        with exclusive(target):
            _recover_locked(target)


def _recover_locked(target: Path) -> None:
    if _is_lost(target):
        previous_path(target).rename(target)


def _is_lost(target: Path) -> bool:
    return previous_path(target).is_dir() and not target.exists()


def _is_being_replaced(folder: Path) -> bool:
    target = resolve_links(folder)
    return previous_path(target).is_dir() or lock_path(target).exists()


def previous_path(target: Path) -> Path:
    """Returns the place of the old folder during the replacement."""
    return target.with_name(f".{target.name}.previous")


def folder_identity(folder: Path) -> tuple[int, int, int] | None:
    """Returns what two versions of a folder differ in; None where no folder can be read."""
    try:
        status = folder.stat()
    except OSError:  # there is none, or its name is too long
        return None
    # The file system gives the number of a removed folder to a new one.
    return status.st_dev, status.st_ino, status.st_mtime_ns


def require_version(version: object, newest: int, path: Path) -> None:
    """Raises FolderError for a file whose format is newer than this genpool reads."""
    if type(version) is not int or not 1 <= version <= newest:
        allowed = "1" if newest == 1 else f"1 to {newest}"
        raise FolderError(
            f"{path} has format version {version!r}; this genpool reads {allowed}. "
            "A newer genpool wrote it: pip install --upgrade genpool."
        )


def kind_of(path: Path) -> str | None:
    """Returns the kind of what a path leads to, links followed, or None if there is nothing."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _KINDS.get(stat.S_IFMT(mode), "a special file")


def resolve_links(path: Path) -> Path:
    """Returns the absolute path that links lead to; OSError where they lead in a circle."""
    try:
        return path.resolve()
    except RuntimeError:  # what Python before 3.13 raises for a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


@contextmanager
def temporary_path(target: Path, suffix: str) -> Iterator[Path]:
    """Yields an unused path beside `target`; what is there at the end is removed.

    Its name, .NAME.MACHINE-PROCESS-RANDOM.SUFFIX, says which process uses it: the next writer of
    the same output removes what belongs to processes of this machine that are gone.

    Beside it, because only a move within one file system happens at once; not made by `tempfile`,
    whose files are closed to other users and would stay so after the move.
    """
    # Process ids mean nothing on another machine that shares the disk.
    start = f".{target.name}.{zlib.crc32(platform.node().encode()):08x}"
    path = target.with_name(f"{start}-{os.getpid()}-{secrets.token_hex(4)}.{suffix}")
    _in_use.add(path)
    try:
        _remove_abandoned(target, re.compile(rf"{re.escape(start)}-(\d+)-[0-9a-f]+\.{suffix}"))
        yield path
    finally:
        try:
            # What cannot be removed now is no fault of the writing, and removed by the next writer.
            with suppress(OSError):
                _remove(path)
        finally:
            _in_use.discard(path)


def _remove_abandoned(target: Path, pattern: re.Pattern[str]) -> None:
    # Best effort: a folder that cannot be listed is reported by the writing itself.
    with suppress(OSError):
        for path in list(target.parent.iterdir()):
            match = pattern.fullmatch(path.name)
            if match is None or path in _in_use:
                continue
            if int(match[1]) == os.getpid() or not is_running(int(match[1])):
                _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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
        return True
    return True

"""Temporary names beside an output, and the removal of those that a killed process left.

    .NAME.MACHINE-PROCESS-RANDOM.SUFFIX

A name is used by one writer only, and says which process that is: the next writer of the same
output removes what belongs to processes of this machine that are gone.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: names that this process is using now
_in_use: set[Path] = set()


@contextmanager
def temporary_path(target: Path, suffix: str) -> Iterator[Path]:
    """Yields an unused path beside `target`; what is there at the end is removed.

    Beside it, because only a move within one file system happens at once; not made by `tempfile`,
    whose files are closed to other users and would stay so after the move.
    """
    path = target.with_name(f".{target.name}.{_writer()}-{secrets.token_hex(4)}.{suffix}")
    _in_use.add(path)
    try:
        _remove_abandoned(target, suffix)
        yield path
    finally:
        try:
            # What cannot be removed now is no fault of the writing, and removed by the next writer.
            with suppress(OSError):
                _remove(path)
        finally:
            _in_use.discard(path)


def _writer() -> str:
    return f"{_machine()}-{os.getpid()}"


def _machine() -> str:
    """Process ids mean nothing on another machine that shares the disk."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _remove_abandoned(target: Path, suffix: str) -> None:
    pattern = re.compile(rf"\.{re.escape(target.name)}\.{_machine()}-(\d+)-[0-9a-f]+\.{suffix}")
    # Best effort: a folder that cannot be listed is reported by the writing itself.
    with suppress(OSError):
        for path in list(target.parent.iterdir()):
            match = pattern.fullmatch(path.name)
            if match and path not in _in_use and not _is_other_process(int(match[1])):
                _remove(path)


def _is_other_process(process: int) -> bool:
    """Whether a process other than this one has this id."""
    return process != os.getpid() and is_running(process)


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


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

"""Files that are replaced completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from genpool.disk.file_kinds import FILE, kind_of, resolve_links
from genpool.disk.temporary import temporary_path
from genpool.errors import DataError

#: how the name of a file ends that is not finished
FILE_SUFFIX = "tmp"


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path to write to; at the end it takes the place of `path`.

    Whatever goes wrong in between (a full disk, Ctrl-C) leaves `path` unchanged. A link stays a
    link, and the file that it leads to is replaced.

    Args:
        path: the file to write. Only a regular file is replaced.

    Raises:
        DataError: there is a folder or a special file (a device, a named pipe, a socket) at
            `path`, or it cannot be written.
    """
    output = Path(path)
    try:
        _require_replaceable(output)
        target = resolve_links(output) if output.is_symlink() else output
        with temporary_path(target, FILE_SUFFIX) as temporary:
            yield temporary
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
            _require_replaceable(output)
            temporary.replace(target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", output) from error


def _require_replaceable(path: Path) -> None:
    kind = kind_of(path)
    if kind not in (None, FILE):
        raise DataError(
            f"is {kind}, which would be replaced; expected the name of a file: choose another",
            path,
        )

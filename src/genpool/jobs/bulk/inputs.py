"""The input files of a bulk run: files, folders and globs, each with the name it has in ids."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from genpool.data.table_files import table_format
from genpool.data.text_files import require_existing
from genpool.disk.files import is_file, is_folder, uncompressed_name
from genpool.errors import DataError, InputError

#: what a folder is searched for, beside tables
TEXT_SUFFIXES = (".txt", ".text")
#: bytes at the start and at the end of a file by which it is recognised, beside its size
DIGEST_BYTES = 1 << 16


class InputFile(NamedTuple):
    """A file, and its name in ids and in the manifest."""

    name: str
    path: Path


def find_inputs(sources: Iterable[str | Path], output: Path) -> list[InputFile]:
    """Returns the files of all sources, sorted by name.

    A file has its own name; a file of a folder the path inside the folder, with the folder's name
    before it. A folder is searched for tables, .txt and .text files, plain or compressed.

    Args:
        sources: files, folders, and globs such as "news/*.jsonl" or "**/*.txt".
        output: the folder of the run, which must not be among them.

    Raises:
        InputError: two files would have the same name, or the output is inside an input folder.
        DataError: a source does not exist, or has no file to read.
    """
    files: dict[str, Path] = {}
    for source in sources:
        for file in _files_of(str(source), output):
            other = files.setdefault(file.name, file.path)
            if other.resolve() != file.path.resolve():
                raise InputError(
                    f"{other} and {file.path} would both be {file.name!r} in ids; name the folder "
                    "that contains both of them, or encode them into two folders."
                )
    return [InputFile(name, files[name]) for name in sorted(files)]


def _files_of(source: str, output: Path) -> Iterator[InputFile]:
    if glob.has_magic(source) and not (is_file(source) or is_folder(source)):
        matches = sorted(Path(match) for match in glob.glob(source, recursive=True))  # noqa: PTH207
        files = [path for path in matches if path.is_file()]
        if not files:
            raise DataError("matches no file", source)
        fixed = _fixed_folder(source)
        yield from (InputFile(path.relative_to(fixed).as_posix(), path) for path in files)
        return
    path = require_existing(source)
    if path.is_file():
        yield InputFile(path.name, path)
        return
    folder = path.resolve()
    if output.resolve().is_relative_to(folder):
        raise InputError(f"the output {output} is inside the input folder {path}; choose another.")
    files = [file for file in sorted(folder.rglob("*")) if _is_input(file, folder)]
    if not files:
        raise DataError("is a folder without tables, .txt or .text files", path)
    yield from (InputFile(file.relative_to(folder.parent).as_posix(), file) for file in files)


def _fixed_folder(pattern: str) -> Path:
    """Returns the folder before the first part of a glob that has a wildcard."""
    parts = Path(pattern).parts
    count = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:count])


def _is_input(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "~$")) for part in path.relative_to(folder).parts)
    suffix = Path(uncompressed_name(path)).suffix.lower()
    is_data = table_format(path) is not None or suffix in TEXT_SUFFIXES
    return path.is_file() and is_data and not hidden


def file_digest(path: Path) -> tuple[int, str]:
    """Returns the size of a file and a checksum of its start and its end.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            digest = hashlib.sha256(file.read(DIGEST_BYTES))
            file.seek(max(size - DIGEST_BYTES, 0))
            digest.update(file.read(DIGEST_BYTES))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from error
    return size, f"sha256:{digest.hexdigest()}"

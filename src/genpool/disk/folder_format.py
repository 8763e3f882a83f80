"""Folders that genpool writes and recognises: by the format that their JSON file names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genpool.disk.atomic import atomic_folder
from genpool.errors import FolderError

#: where the JSON file has the checksums of files by name; its own is that of its other entries
CHECKSUMS = "checksums"
#: the list of modules in a folder of sentence-transformers, which such a folder is known by
ST_MODULES = "modules.json"


@dataclass(frozen=True)
class FolderFormat:
    """A kind of folder."""

    name: str  # the entry "format" of the JSON file
    title: str  # for messages: "a genpool model"
    files: tuple[str, ...]  # the JSON file first; all others belong to somebody else
    #: what a message adds about a refused folder and the content of its JSON file
    hint: Callable[[Path, Mapping[str, Any]], str] = lambda folder, content: ""
    version: int = 1

    def read(self, folder: Path) -> dict[str, Any]:
        """Returns the content of the JSON file; FolderError if the folder is of another kind."""
        path = folder / self.files[0]
        if not folder.is_dir():
            problem = "is a file" if folder.exists() else "there is no such folder"
            raise FolderError(f"{folder}: {problem}; expected {self.title}.")
        if not path.is_file():
            names = ", ".join(sorted(file.name for file in folder.iterdir())[:8]) or "nothing"
            raise FolderError(
                f"{folder} has no {path.name}, so it is not {self.title}. It has: {names}."
                f"{self.hint(folder, {})}"
            )
        content = read_json(path)
        if content.get("format") != self.name:
            raise FolderError(
                f"{path} is not of {self.title}: its format is {content.get('format')!r}; expected "
                f'"{self.name}".{self.hint(folder, content)}'
            )
        require_version(content.get("format_version"), self.version, path)
        return content

    def require_files(self, folder: Path, names: Sequence[str]) -> None:
        """Raises FolderError for a folder without all of these files."""
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.")

    @contextmanager
    def replace(self, path: str | Path, what: str) -> Iterator[Path]:
        """Yields a new folder, as `atomic_folder` does; only one of this format is replaced."""

        def require_replaceable(target: Path) -> None:
            try:
                self.read(target)
            except FolderError as error:
                raise FolderError(
                    f"{target} contains something else, which saving would replace ({error}) "
                    "Choose a new or empty folder."
                ) from None

        with atomic_folder(path, what, require_replaceable, self.files) as fresh:
            yield fresh

    def write(
        self, folder: Path, content: Mapping[str, Any], checksums: Mapping[str, str] | None = None
    ) -> None:
        """Writes the JSON file, with the checksums of other files by name, if there are any."""
        write_text(folder / self.files[0], self.to_json(content, checksums))

    def to_json(
        self, content: Mapping[str, Any], checksums: Mapping[str, str] | None = None
    ) -> str:
        """Returns the text of the JSON file."""
        content = {"format": self.name, "format_version": self.version, **content}
        if checksums:
            content[CHECKSUMS] = {self.files[0]: content_checksum(content), **checksums}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def require_checksums(
        self, folder: Path, content: Mapping[str, Any], actual: Mapping[str, str]
    ) -> None:
        """Raises FolderError if a file is not the one that was saved with the JSON file.

        `actual` has the checksums of the other files. A folder changed by hand may have none.
        """
        source, checksums = folder / self.files[0], content.get(CHECKSUMS, {})
        if not isinstance(checksums, dict):
            raise FolderError(
                f"{source} is damaged: {CHECKSUMS} is {type(checksums).__name__}, expected dict."
            )
        actual = {source.name: content_checksum(content), **actual}
        for name, checksum in checksums.items():
            if actual.get(name, checksum) != checksum:
                pair = f"{folder / name} and {source} do not belong together"
                problem = f"{source} was changed" if name == source.name else pair
                raise FolderError(
                    f"{problem}: the checksum of {name} is {actual[name]}, saved was {checksum}. "
                    "The folder was damaged, or files of two models were mixed: copy it again. If "
                    f'you changed it yourself, remove "{CHECKSUMS}" from {source.name}.'
                )


def read_json(path: Path) -> dict[str, Any]:
    """Returns the content of a JSON file; FolderError if it is not JSON with named entries."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise FolderError(f"{path} contains {type(content).__name__}; expected named entries.")
    return content


def require_version(version: object, newest: int, path: Path) -> None:
    """Raises FolderError for a file whose format is newer than this genpool reads."""
    if type(version) is not int or not 1 <= version <= newest:
        allowed = "1" if newest == 1 else f"1 to {newest}"
        raise FolderError(
            f"{path} has format version {version!r}; this genpool reads {allowed}. "
            "A newer genpool wrote it: pip install --upgrade genpool."
        )


def write_text(path: Path, text: str) -> None:
    """Writes a text file with the same bytes on every system."""
    path.write_text(text, encoding="utf-8", newline="\n")


def data_checksum(data: bytes) -> str:
    """Returns the checksum of the content of a file: what `sha256sum` prints."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def file_checksum(path: Path) -> str:
    """Returns the checksum of a file, which is read in parts."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def content_checksum(content: Mapping[str, Any]) -> str:
    """Returns the checksum of all entries but the checksums."""
    entries = {name: value for name, value in content.items() if name != CHECKSUMS}
    plain = json.loads(json.dumps(entries))  # as it is read: tuples are lists, all keys are strings
    return data_checksum(json.dumps(plain, sort_keys=True).encode())

"""Checksums by which a folder shows that its files belong together and are undamaged.

config.json has them under "checksums", by the name of the file. Its own is that of its other
entries, in a fixed form. Folders without checksums, of earlier versions, are not checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from genpool.errors import FolderError

CHECKSUMS = "checksums"


def file_checksum(data: bytes) -> str:
    """Returns the checksum of a file's content: what `sha256sum` prints."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def stream_checksum(file: BufferedReader) -> str:
    """Returns the checksum of a file that is not read into memory at once."""
    return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def config_checksum(config: Mapping[str, Any]) -> str:
    """Returns the checksum of all entries but the checksums."""
    entries = {name: value for name, value in config.items() if name != CHECKSUMS}
    plain = json.loads(json.dumps(entries))  # as it is read: tuples are lists, all keys are strings
    return file_checksum(json.dumps(plain, sort_keys=True).encode())


def require_checksums(folder: Path, config: Mapping[str, Any], actual: Mapping[str, str]) -> None:
    """Raises FolderError if a file is not the one that was saved with config.json.

    Args:
        folder: the folder, for errors.
        config: the content of config.json.
        actual: the checksums of the files that were read, by name.
    """
    source = folder / "config.json"
    expected = config.get(CHECKSUMS, {})
    if not isinstance(expected, dict):
        kind = type(expected).__name__
        raise FolderError(f"{source} is damaged: {CHECKSUMS} is {kind}, expected dict.")
    for name, checksum in expected.items():
        if name in actual and actual[name] != checksum:
            pair = f"{folder / name} and {source} do not belong together"
            problem = f"{source} was changed" if name == source.name else pair
            raise FolderError(
                f"{problem}: the checksum of {name} is {actual[name]}, saved was {checksum}. "
                "The folder was damaged, or files of two models were mixed: copy it again. If you "
                f'changed it yourself, remove "{CHECKSUMS}" from {source.name}.'
            )

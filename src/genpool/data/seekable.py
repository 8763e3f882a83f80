"""Files that are not read from their start to their end, also where they are compressed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from genpool.disk.files import COMPRESSED, open_bytes


@contextmanager
def open_seekable(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file to be read at any place; a compressed one is unpacked into a temporary file.

    Raises:
        DataError: the file is missing, damaged or truncated.
    """
    with open_bytes(path) as stream:
        if path.suffix.lower() not in COMPRESSED:
            yield stream
            return
        # A compressed stream can go back only by starting over.
        with tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(stream, unpacked)
            unpacked.seek(0)
            yield unpacked

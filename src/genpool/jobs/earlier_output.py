"""What an output of `encode_file` will replace."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from genpool.errors import GenpoolError
from genpool.jobs.vector_files import FORMATS
from genpool.search import IndexCard, is_folder_name


def describe_earlier_output(output: str | Path) -> str | None:
    """Returns rows and date of what is at `output` now, such as "3 rows, 2025-06-01 12:30".

    Returns None if nothing is there, or nothing that may be replaced: writing refuses that.
    """
    path = Path(output)
    try:
        if is_folder_name(output):
            return _describe(IndexCard.read(path).rows, path)
        if path.suffix not in FORMATS or not path.is_file():
            return None
    except (GenpoolError, OSError):
        return None
    rows = None
    # Whatever stands in a file of that name: it is replaced, and only its rows stay unknown.
    with suppress(Exception):
        rows = FORMATS[path.suffix].rows(path)
    return _describe(rows, path)


def _describe(rows: int | None, path: Path) -> str:
    date = datetime.fromtimestamp(path.stat().st_mtime).strftime("%Y-%m-%d %H:%M")
    return f"{'unknown' if rows is None else format(rows, ',')} rows, {date}"

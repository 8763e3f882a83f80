"""Sentences of a file: one a line, or a column of a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from genpool.data.table import TableReader
from genpool.disk.files import SAVE_AS_UTF8, raw_lines, uncompressed_name
from genpool.errors import DataError, InputError


def is_table(source: str | Path) -> bool:
    name = Path(uncompressed_name(Path(source)))
    return name.suffix.lower() in (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")


def column_reader(source: str | Path, column: str, bad_rows: str = "error") -> TableReader:
    """A reader of one column of a table; it counts the bad rows that it was told to skip."""
    if str(source) == "-":
        raise InputError("standard input has one sentence a line; a column needs a file.")
    return TableReader(source, first=column, labelled=False, empty_texts=True, bad_rows=bad_rows)


def read_sentences(source: str | Path | TableReader, column: str | None = None) -> Iterator[str]:
    """The sentences of a file; an empty line or cell is a sentence without tokens."""
    if not isinstance(source, TableReader) and column is not None:
        source = column_reader(source, column)
    if isinstance(source, TableReader):
        for example in source.read(source.splits()[0]):
            yield example.first
        return
    name = "standard input" if str(source) == "-" else source
    for number, data in _lines(source):
        try:
            yield data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"is not UTF-8 text: {error.reason}; {SAVE_AS_UTF8}", name, number
            ) from None


def _lines(source: str | Path) -> Iterator[tuple[int, bytes]]:
    if str(source) == "-":
        # As bytes, like a file: what a line is must not hang on the terminal's settings.
        for number, line in enumerate(sys.stdin.buffer, start=1):
            yield number, line.rstrip(b"\r\n")
    else:
        yield from ((number, data) for number, _, data in raw_lines(Path(source)))

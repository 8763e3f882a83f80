"""Sentences of a file: one per line, or a column of a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from genpool.data.table import TableReader
from genpool.disk.files import SAVE_AS_UTF8, raw_lines, refuse_utf16, uncompressed_name
from genpool.errors import DataError, InputError

_STANDARD_INPUT = "standard input"


def is_table(source: str | Path) -> bool:
    """Returns whether a file is a table, by its name."""
    name = Path(uncompressed_name(Path(source)))
    return name.suffix.lower() in (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")


def column_reader(source: str | Path, column: str, bad_rows: str = "error") -> TableReader:
    """Returns a reader of one column of a table, which counts the bad rows that it skips.

    Args:
        source: the table.
        column: the name of the column of sentences; empty cells are sentences without tokens.
        bad_rows: "error" (default) or "skip"; see `Reader`.

    Raises:
        InputError: the source is standard input.
        DataError: there is no such table.
    """
    if str(source) == "-":
        raise InputError("standard input has one sentence per line; a column needs a file.")
    return TableReader(source, first=column, labelled=False, empty_texts=True, bad_rows=bad_rows)


def read_sentences(source: str | Path | TableReader, column: str | None = None) -> Iterator[str]:
    """Yields the sentences of a file; an empty line or cell is a sentence without tokens.

    Args:
        source: a text file with one sentence per line, "-" for standard input, a table, or a
            reader made by `column_reader`.
        column: the column of a table that holds the sentences. None (default) for a text file.

    Raises:
        InputError: standard input is closed, or was asked for a column.
        DataError: the file cannot be read, or is not UTF-8 text.
    """
    if not isinstance(source, TableReader) and column is not None:
        source = column_reader(source, column)
    if isinstance(source, TableReader):
        for example in source.read(source.splits()[0]):
            yield example.first
        return
    name = _STANDARD_INPUT if str(source) == "-" else source
    for number, data in _lines(source):
        try:
            yield data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"is not UTF-8 text: {error.reason}; {SAVE_AS_UTF8}", name, number
            ) from None


def _lines(source: str | Path) -> Iterator[tuple[int, bytes]]:
    if str(source) != "-":
        yield from ((number, data) for number, _, data in raw_lines(Path(source)))
        return
    if sys.stdin is None:  # as Python has it where the file descriptor is closed
        raise InputError("standard input is closed; pipe sentences into it, or name a file.")
    # As bytes, like a file: what a line is must not depend on the settings of the terminal.
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if number == 1:
            refuse_utf16(line, _STANDARD_INPUT)
        yield number, line.rstrip(b"\r\n")

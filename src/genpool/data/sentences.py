"""Sentences of a file, one per line or a column of a table: read, counted, as examples."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from genpool.data.reader import BadRow, Example, Reader, Record
from genpool.data.table import TableReader
from genpool.data.table_files import count_parquet_rows
from genpool.data.text_files import require_existing
from genpool.disk.files import RawLine, decode_utf8, is_file, raw_lines, split_lines
from genpool.errors import InputError, counted

STANDARD_INPUT = "standard input"


class LinesReader(Reader):
    """Reads one example per line; an empty line is a text without words.

    Args:
        source: a text file, or "-" for standard input.
        is_pair: True if a line holds two sentences with a tab between them. Default False.
        **options: the options of `Reader`.
    """

    def __init__(self, source: str | Path, *, is_pair: bool = False, **options: Any) -> None:
        is_input = str(source) == "-"
        super().__init__(STANDARD_INPUT if is_input else require_existing(source), **options)
        self._is_pair = is_pair

    @property
    def is_pair(self) -> bool:
        return self._is_pair

    def splits(self) -> list[str]:
        return ["all"]

    def check(self, split: str | None = None) -> None:
        """Raises DataError if a split is absent; nothing is read: input can be read only once."""
        self._require_split(split or "all")

    def records(self, split: str) -> Iterator[Record]:
        place = str(self.place)
        for number, _, data in self._lines():
            yield Record(place, number, {"line": decode_utf8(data, place, number)})

    def _lines(self) -> Iterator[RawLine]:
        if isinstance(self.place, Path):
            return raw_lines(self.place)
        if sys.stdin is None:  # as Python has it where the file descriptor is closed
            raise InputError("standard input is closed; pipe sentences into it, or name a file.")
        # As bytes, like a file: what a line is must not depend on the settings of the terminal.
        return split_lines(sys.stdin.buffer, STANDARD_INPUT)

    def example(self, values: Mapping[str, object], split: str) -> Example:
        line = str(values["line"])
        if not self._is_pair:
            return Example(None, line)
        sides = line.split("\t")
        if len(sides) != 2:
            problem = f"has {counted(len(sides), 'sentence')}; expected two with a tab between them"
            raise BadRow("wrong number of fields", problem)
        return Example(None, sides[0], sides[1])


def column_reader(source: str | Path, column: str, **options: Any) -> TableReader:
    """Returns a reader of one column of a table; empty cells are sentences without tokens.

    `options` are those of `TableReader`; the values of the columns to keep are in its examples.
    """
    if str(source) == "-":
        raise InputError("standard input has one sentence per line; a column needs a file.")
    return TableReader(source, first=column, labelled=False, empty_texts=True, **options)


def read_rows(source: str | Path | Reader) -> Iterator[Example]:
    """Returns the sentences of a file as examples; an empty line is a sentence without tokens.

    The source is a text file with one sentence per line, "-" for standard input, or a reader, such
    as one made by `column_reader`.
    """
    reader = source if isinstance(source, Reader) else LinesReader(source)
    return reader.read(reader.splits()[0])


def read_sentences(source: str | Path | Reader, column: str | None = None) -> Iterator[str]:
    """Yields the sentences of a file, as in `read_rows`, or of a column of a table."""
    if column is not None and not isinstance(source, Reader):
        source = column_reader(source, column)
    for example in read_rows(source):
        yield example.first


def count_sentences(source: str | Path | TableReader) -> int | None:
    """Returns how many sentences `read_sentences` will yield, much faster than they are encoded.

    A bad row of a table is therefore reported before anything is encoded. None for what can be
    read only once: standard input, a pipe, a device.
    """
    if isinstance(source, TableReader):
        path = source.place
        if path is None or not is_file(path):
            return None
        if path.suffix.lower() == ".parquet" and source.bad_rows == "error":
            with suppress(Exception):  # a damaged file is reported where it is read
                return count_parquet_rows(path)
        return sum(1 for _ in read_rows(source))
    if str(source) == "-" or not is_file(source):
        return None
    return sum(1 for _ in raw_lines(Path(source)))

"""Sentences of a file, one per line or a column of a table: read, counted, as examples."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from genpool.data.reader import BadRow, Example, Reader, Record
from genpool.data.table import TableReader
from genpool.data.text_files import require_existing
from genpool.disk.files import decode_utf8, is_file, raw_lines, split_lines
from genpool.errors import InputError, counted

STANDARD_INPUT = "standard input"


class LinesReader(Reader):
    """Reads one example per line; an empty line is a text without words.

    Args:
        source: a text file, or "-" for standard input.
        is_pair: True if a line holds two sentences with a tab between them. Default False.
        **options: the options of `Reader`.
    """

    is_pair = False

    def __init__(self, source: str | Path, *, is_pair: bool = False, **options: Any) -> None:
        is_input = str(source) == "-"
        super().__init__(STANDARD_INPUT if is_input else require_existing(source), **options)
        self.is_pair = is_pair

    def splits(self) -> list[str]:
        return ["all"]

    def check(self, split: str | None = None) -> None:
        """Raises DataError if a split is absent; nothing is read: input can be read only once."""
        self._require_split(split or "all")

    def records(self, split: str) -> Iterator[Record]:
        if isinstance(self.place, Path):
            lines = raw_lines(self.place)
        elif sys.stdin is None:  # as Python has it where the file descriptor is closed
            raise InputError("standard input is closed; pipe sentences into it, or name a file.")
        else:
            # As bytes, like a file: what a line is must not depend on the settings of the terminal.
            lines = split_lines(sys.stdin.buffer, STANDARD_INPUT)
        place = str(self.place)
        for number, _, data in lines:
            yield Record(place, number, {"line": decode_utf8(data, place, number)})

    def example(self, values: Mapping[str, object], split: str) -> Example:
        line = str(values["line"])
        if not self.is_pair:
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


def read_rows(reader: Reader) -> Iterator[Example]:
    """Returns the examples of the first split of a reader."""
    return reader.read(reader.splits()[0])


def read_sentences(source: str | Path, column: str | None = None) -> Iterator[str]:
    """Returns the lines of a file, or of standard input ("-"), or a column of a table."""
    reader = LinesReader(source) if column is None else column_reader(source, column)
    return (example.first for example in read_rows(reader))


def count_rows(reader: LinesReader | TableReader) -> int | None:
    """Returns how many examples `read_rows` will yield; None for what can be read only once.

    A bad row of a table is therefore reported before anything is encoded.
    """
    path = reader.place
    if not isinstance(path, Path) or not is_file(path):
        return None
    if isinstance(reader, LinesReader):
        return sum(1 for _ in raw_lines(path))
    return sum(1 for _ in read_rows(reader))

"""Sentences of a file, one per line or a column of a table: read, counted, as examples."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from genpool.data.reader import Example, Reader
from genpool.data.rows import BadRow, Record
from genpool.data.table import TableReader
from genpool.data.table_files import count_parquet_rows
from genpool.data.text_files import require_existing
from genpool.disk.files import SAVE_AS_UTF8, is_file, open_bytes, raw_lines, refuse_utf16
from genpool.errors import DataError, InputError, counted

STANDARD_INPUT = "standard input"
READ_BYTES = 1 << 20


class SentenceRow(NamedTuple):
    """A sentence, and the values of the columns that are kept beside it."""

    sentence: str
    kept: tuple[object, ...] = ()


def column_reader(source: str | Path, column: str, **options: Any) -> TableReader:
    """Returns a reader of one column of a table; empty cells are sentences without tokens.

    `options` are those of `TableReader`; the values of the columns to keep are in `read_rows` too.
    """
    if str(source) == "-":
        raise InputError("standard input has one sentence per line; a column needs a file.")
    return TableReader(source, first=column, labelled=False, empty_texts=True, **options)


def read_sentences(source: str | Path | TableReader, column: str | None = None) -> Iterator[str]:
    """Yields the sentences of a file; an empty line or cell is a sentence without tokens.

    The source is a text file with one sentence per line, "-" for standard input, a table, of which
    the column is then named, or a reader made by `column_reader`.
    """
    if not isinstance(source, TableReader) and column is not None:
        source = column_reader(source, column)
    for row in read_rows(source):
        yield row.sentence


def read_rows(source: str | Path | TableReader) -> Iterator[SentenceRow]:
    """Yields the sentences of a file, each with the values of the columns that are kept."""
    if isinstance(source, TableReader):
        for example in source.read(source.splits()[0]):
            yield SentenceRow(example.first, example.kept)
        return
    name = STANDARD_INPUT if str(source) == "-" else source
    for number, data in _numbered_lines(source):
        try:
            yield SentenceRow(data.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise DataError(
                f"is not UTF-8 text: {error.reason}; {SAVE_AS_UTF8}", name, number
            ) from None


def _numbered_lines(source: str | Path) -> Iterator[tuple[int, bytes]]:
    if str(source) != "-":
        yield from ((number, data) for number, _, data in raw_lines(Path(source)))
        return
    if sys.stdin is None:  # as Python has it where the file descriptor is closed
        raise InputError("standard input is closed; pipe sentences into it, or name a file.")
    # As bytes, like a file: what a line is must not depend on the settings of the terminal.
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if number == 1:
            refuse_utf16(line, STANDARD_INPUT)
        yield number, line.rstrip(b"\r\n")


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
        return sum(1 for _ in read_sentences(source))
    if str(source) == "-" or not is_file(source):
        return None
    lines, last = 0, b"\n"
    with open_bytes(Path(source)) as stream:
        while block := stream.read(READ_BYTES):
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")  # the last line may have no end


class LinesReader(Reader):
    """Reads one example per line; an empty line is a text without words.

    Args:
        source: a text file, or "-" for standard input.
        is_pair: True if a line holds two sentences with a tab between them. Default False.
        **options: the options of `Reader`.
    """

    def __init__(self, source: str | Path, *, is_pair: bool = False, **options: Any) -> None:
        super().__init__(STANDARD_INPUT if str(source) == "-" else Path(source), **options)
        self._source = source if str(source) == "-" else require_existing(source)
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
        for number, line in enumerate(read_sentences(self._source), start=1):
            yield Record(str(self.place), number, {"line": line})

    def example(self, values: Mapping[str, object], split: str) -> Example:
        line = str(values["line"])
        if not self._is_pair:
            return Example(None, line)
        sides = line.split("\t")
        if len(sides) != 2:
            problem = f"has {counted(len(sides), 'sentence')}; expected two with a tab between them"
            raise BadRow("wrong number of fields", problem)
        return Example(None, sides[0], sides[1])

"""Any table: TSV, CSV, JSON Lines, Parquet or Excel, plain or compressed, columns by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Unpack

from genpool.data.column_reader import ColumnOptions, ColumnReader
from genpool.data.rows import Record
from genpool.data.table_files import (
    TABLE_SUFFIXES,
    require_table,
    table_records,
    tables_of_folder,
)
from genpool.data.text_files import TextEncoding, require_existing
from genpool.errors import ConfigError

_ORDER = ("train", "dev", "test")


class TableReader(ColumnReader):
    """Reads tables: .tsv, .csv, .jsonl, .parquet or .xlsx, plain or compressed.

    Args:
        path: a folder with a table for each split, one table (its only split is then called
            "all"), or a table for each split, by the name of the split. In a folder a split has
            the name of its file, and "validation", "valid" and "val" are "dev".
        quotes: whether fields may be quoted. None (default): in .csv they may, in .tsv a quote is
            a character like any other.
        delimiter: the character between fields. None (default): a tab in .tsv; in .csv the comma,
            semicolon, tab or bar that the header has most often.
        encoding: the encoding of the text, such as "cp1252" or "utf-16". None (default): UTF-8.
        sheet: the sheet of an Excel file. None (default): the first.
        **options: the options of `ColumnReader`.

    Raises:
        ConfigError: an option has a value that is not allowed.
        DataError: there is no such file or folder, or it is not a table by its name.

    Example:
        >>> TableReader("sick")  # sick/train.tsv.xz, sick/dev.tsv.xz, sick/test.tsv.xz
        >>> TableReader("reviews.csv", first="body")
        >>> TableReader({"train": "a.csv", "dev": "b.parquet"})
    """

    place: Path | None

    def __init__(
        self,
        path: str | Path | Mapping[str, str | Path],
        *,
        quotes: bool | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        **options: Unpack[ColumnOptions],
    ) -> None:
        super().__init__(**options)
        if delimiter is not None and len(delimiter) != 1:
            raise ConfigError(f"delimiter is {delimiter!r}; expected one character")
        self._quotes, self._delimiter, self._sheet = quotes, delimiter, sheet
        self._encoding = TextEncoding(encoding)
        if isinstance(path, Mapping):
            self._files = {split: require_existing(file) for split, file in path.items()}
        else:
            self.place = place = require_existing(path)
            self._files = tables_of_folder(place) if place.is_dir() else {"all": place}
        for file in self._files.values():
            require_table(file)

    @property
    def skipped_advice(self) -> str | None:
        """How to name the encoding, if rows were left out because they are not UTF-8."""
        return self._encoding.advice if self.skipped else None

    def splits(self) -> list[str]:
        """Returns train, dev and test where present, then all other tables by name."""
        return sorted(self._files, key=lambda split: (split not in _ORDER, _rank(split), split))

    def _absent(self, split: str) -> str:
        names = ", ".join(split + suffix for suffix in TABLE_SUFFIXES)
        return f"{super()._absent(split)} Looked for {names}."

    def records(self, split: str) -> Iterator[Record]:
        return table_records(
            self._files[split],
            partial(self._choose, split),
            self._encoding,
            quotes=self._quotes,
            delimiter=self._delimiter,
            sheet=self._sheet,
        )


def _rank(split: str) -> int:
    return _ORDER.index(split) if split in _ORDER else 0

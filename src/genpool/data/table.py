"""Any table: TSV, CSV, JSON Lines or Parquet, plain or compressed, columns chosen by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Unpack

from genpool.data.column_reader import ColumnOptions, ColumnReader
from genpool.data.folders import list_names, require_existing
from genpool.data.formats import csv_records, json_records, tsv_records
from genpool.data.parquet import parquet_records
from genpool.data.rows import Record
from genpool.disk.files import COMPRESSED, uncompressed_name
from genpool.errors import ConfigError, DataError

_DELIMITERS = {".tsv": "\t", ".csv": ","}
_SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")
_ORDER = ("train", "dev", "test")
_OTHER_NAMES = {"validation": "dev", "valid": "dev", "val": "dev"}


class TableReader(ColumnReader):
    """Reads tables: .tsv, .csv, .jsonl or .parquet, plain or compressed.

    Args:
        path: a folder with a table for each split, one table (its only split is then called
            "all"), or a table for each split, by the name of the split. In a folder a split has
            the name of its file, and "validation", "valid" and "val" are "dev".
        quotes: whether fields may be quoted. None (default): in .csv they may, in .tsv a quote is
            a character like any other.
        delimiter: the character between fields. None (default): a comma in .csv, a tab in .tsv.
        **options: the options of `ColumnReader`.

    Raises:
        ConfigError: an option has a value that is not allowed.
        DataError: there is no such file or folder, or it is not a table by its name.

    Example:
        >>> TableReader("sick")  # sick/train.tsv.xz, sick/dev.tsv.xz, sick/test.tsv.xz
        >>> TableReader("reviews.csv", first="body")
        >>> TableReader({"train": "a.csv", "dev": "b.parquet"})
    """

    def __init__(
        self,
        path: str | Path | Mapping[str, str | Path],
        *,
        quotes: bool | None = None,
        delimiter: str | None = None,
        **options: Unpack[ColumnOptions],
    ) -> None:
        super().__init__(**options)
        if delimiter is not None and len(delimiter) != 1:
            raise ConfigError(f"delimiter is {delimiter!r}; expected one character")
        self._quotes, self._delimiter = quotes, delimiter
        if isinstance(path, Mapping):
            self._place = None
            self._files = {split: require_existing(file) for split, file in path.items()}
        else:
            self._place = require_existing(path)
            self._files = (
                _tables_of_folder(self._place) if self._place.is_dir() else {"all": self._place}
            )
        for file in self._files.values():
            if _format(file) is None:
                kinds = f"{', '.join(_SUFFIXES)} (or these with {', '.join(COMPRESSED)})"
                raise DataError(f"is not a table by its name; expected {kinds}", file)

    @property
    def place(self) -> Path | None:
        """The folder or the file."""
        return self._place

    def splits(self) -> list[str]:
        """Returns train, dev and test where present, then all other tables by name."""
        return sorted(self._files, key=lambda split: (split not in _ORDER, _rank(split), split))

    def _absent(self, split: str) -> str:
        names = ", ".join(split + suffix for suffix in _SUFFIXES)
        return f"{super()._absent(split)} Looked for {names}."

    def _records(self, split: str) -> Iterator[Record]:
        path = self._files[split]
        choose = partial(self._choose, split)
        kind = _format(path)
        if kind == ".parquet":
            return parquet_records(path, choose)
        if kind in _DELIMITERS:
            delimiter = self._delimiter or _DELIMITERS[kind]
            quoted = kind == ".csv" if self._quotes is None else self._quotes
            records = csv_records if quoted else tsv_records
            return records(path, choose, delimiter)
        return json_records(path, choose)


def _rank(split: str) -> int:
    return _ORDER.index(split) if split in _ORDER else 0


def _format(path: Path) -> str | None:
    suffix = Path(uncompressed_name(path)).suffix.lower()
    return suffix if suffix in _SUFFIXES else None


def _tables_of_folder(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not path.is_file() or _format(path) is None:
            continue
        stem = Path(uncompressed_name(path)).stem
        split = _OTHER_NAMES.get(stem.lower(), stem)
        if split in files:
            problem = f"{files[split].name} and {path.name} are both {split!r}; keep one of them"
            raise DataError(problem, folder)
        files[split] = path
    if not files:
        expected = ", ".join(f"train{suffix}" for suffix in _SUFFIXES)
        problem = f"looked for tables such as {expected}, but it holds: {list_names(folder)}"
        raise DataError(problem, folder)
    return files

"""Tables of sentences with columns by name: files of any kind, and data sets of the hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from genpool.data import reader as rows
from genpool.data import text_files
from genpool.data.columns import USES, check_uses, find_columns, require_columns
from genpool.data.reader import SPLITS, BadRows, DroppedRow, Example, Reader, Record
from genpool.data.table_files import RowFile
from genpool.errors import ConfigError, DataError, require_extra


class ColumnReader(Reader):
    """A reader of rows with named columns.

    Args:
        label: the column of labels. Like the other columns, it is found by its usual names
            ("label", "gold_label") if None, the default.
        first: the column of sentences, or of first sentences of pairs.
        second: the column of second sentences of pairs; needs `first`.
        score: the column of similarity scores.
        genre: the column of genres.
        id: the column of identifiers.
        preferred: columns by their use, such as {"first": "body", "label": "stars"}: they are taken
            where a table has them and no other was named. Default None.
        labels: the labels that are allowed, in their order. None (default) allows any.
        labelled: True (default) requires a column of labels or scores; False reads tables without
            one too, to predict them.
        tokenized: True if the texts are tokens joined by single spaces. Default False.
        empty_texts: True reads an empty text as a sentence without tokens; False (default) takes
            it for a bad row.
        keep: names of columns whose values are kept as they are, in `Example.kept`. Default: none.
        bad_rows: "error" (default) or "skip"; see `Reader`.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        label: str | None = None,
        first: str | None = None,
        second: str | None = None,
        score: str | None = None,
        genre: str | None = None,
        id: str | None = None,
        preferred: Mapping[str, str] | None = None,
        labels: Sequence[str] | None = None,
        labelled: bool = True,
        tokenized: bool = False,
        empty_texts: bool = False,
        keep: Sequence[str] = (),
        bad_rows: BadRows = "error",
    ) -> None:
        super().__init__(path, bad_rows=bad_rows)
        named = zip(USES, (label, first, second, score, genre, id), strict=True)
        self._wanted = check_uses({use: name for use, name in named if name is not None})
        self._preferred = check_uses(preferred or {})
        # Per split: the test table of a competition has no column of labels.
        self._columns: dict[str, dict[str, str]] = {}
        #: the columns whose values are in `Example.kept`
        self.kept = tuple(keep)
        self._labels = None if labels is None else tuple(labels)
        self._labelled, self._tokenized, self._empty_texts = labelled, tokenized, empty_texts

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The option `labels`; None if the training data decides."""
        return self._labels

    @property
    def is_pair(self) -> bool:
        """Whether the first split has a column for a second sentence."""
        if "first" in self._wanted:
            return "second" in self._wanted
        return "second" in self.columns(self.splits()[0])

    def columns(self, split: str) -> dict[str, str]:
        if split not in self._columns:
            self.check(split)
        return dict(self._columns.get(split, {}))

    def _choose(
        self, split: str, names: Sequence[str], path: Path | str, line: int | None
    ) -> list[str]:
        """Finds the columns of a split and returns the names of those that are used."""
        columns = find_columns(self._wanted, self._preferred, names, path, line, self._labelled)
        self._columns[split] = columns
        require_columns(self.kept, names, path, line)
        texts = [columns[use] for use in ("first", "second") if use in columns]
        extra = filter(None, self._annotation_columns(texts, names))
        return [*dict.fromkeys([*columns.values(), *extra, *self.kept])]

    def example(self, values: Mapping[str, object], split: str) -> Example:
        columns = self._columns[split]
        known = {use: rows.to_text(values.get(name)) for use, name in columns.items()}
        # Where no labels are needed, one may be empty.
        label, score = (
            columns.get(use) if self._labelled or known.get(use) else None
            for use in ("label", "score")
        )
        gold = None if label is None else rows.parse_label(values, label, self.labels)
        texts = [columns[use] for use in ("first", "second") if use in columns]
        first, *second = (rows.parse_text(values, name, self._empty_texts) for name in texts)
        return Example(
            gold,
            first,
            second[0] if second else None,
            genre=known.get("genre"),
            id=known.get("id"),
            score=None if score is None else rows.parse_score(values, score),
            tokenized=self._tokenized,
            annotations=self._annotations(texts, values),
            # A line of JSON may lack a field: its value is empty.
            kept=tuple(map(values.get, self.kept)) if self.kept else (),
        )


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
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if delimiter is not None and len(delimiter) != 1:
            raise ConfigError(f"delimiter is {delimiter!r}; expected one character")
        if isinstance(path, Mapping):
            files = {split: text_files.require_existing(file) for split, file in path.items()}
        else:
            self.place = place = text_files.require_existing(path)
            files = text_files.tables_of_folder(place) if place.is_dir() else {"all": place}
        how: dict[str, Any] = {"quotes": quotes, "delimiter": delimiter, "sheet": sheet}
        tables = {split: text_files.require_table(file) for split, file in files.items()}
        self._files = {split: RowFile(file, (), encoding, **how) for split, file in tables.items()}

    def splits(self) -> list[str]:
        """Returns train, dev and test where present, then all other tables by name."""
        usual = [split for split in SPLITS if split in self._files]
        return usual + sorted(self._files.keys() - SPLITS)

    def _absent(self, split: str) -> str:
        names = ", ".join(split + suffix for suffix in text_files.TABLE_SUFFIXES)
        return f"{super()._absent(split)} Looked for {names}."

    def records(self, split: str) -> Iterator[Record]:
        return self._files[split].records(partial(self._choose, split))


class HubReader(ColumnReader):
    """Reads a data set by its name on the Hugging Face hub, streamed.

    A split that the hub calls "validation" is "dev" here. A column of numbered classes is read as
    the names of the classes, and rows whose class is -1 (no gold label) are dropped and counted.
    In messages the line of a record is the number of its row.

    Args:
        name: the name of the data set on the hub.
        config: the configuration of the data set; None (default) if it has only one.
        revision: a branch, tag or commit of the data set; None (default) for the newest.
        **options: the options of `ColumnReader`.
    """

    def __init__(
        self, name: str, *, config: str | None = None, revision: str | None = None, **options: Any
    ) -> None:
        super().__init__(name, **options)
        with require_extra("reading data sets of the hub", "datasets"):
            import datasets
        self._hub: Any = datasets
        self._name, self._config, self._revision = name, config, revision
        self._classes: dict[str, tuple[str, ...]] = {}

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The option `labels`, or else the classes that the data set declares."""
        if self._labels is not None:
            return self._labels
        if not self._classes:
            next(self.records(self.splits()[0]), None)
        return next(iter(self._classes.values()), None) or None

    def splits(self) -> list[str]:
        return list(self._hub_splits)

    @cached_property
    def _hub_splits(self) -> dict[str, str]:
        names = self._ask(self._hub.get_dataset_split_names)
        # SNLI has "validation", MultiNLI "validation_matched".
        return {name.replace("validation", "dev"): name for name in names}

    def _ask(self, function: Any, **options: Any) -> Any:
        try:
            return function(self._name, self._config, revision=self._revision, **options)
        except (OSError, ValueError) as error:
            # No network, no such data set, or a config that must be named: the user can fix each.
            raise DataError(f"cannot be read from the hub: {error}", self._name) from error

    def records(self, split: str) -> Iterator[Record]:
        stream = self._ask(self._hub.load_dataset, split=self._hub_splits[split], streaming=True)
        try:
            for row, values in enumerate(stream, start=1):
                if row == 1:
                    self._choose(split, list(values), self._name, None)
                    column = self._columns[split].get("label")
                    names = getattr((stream.features or {}).get(column), "names", None)
                    self._classes[split] = tuple(names or ())
                yield Record(self._name, row, values)
        except OSError as error:
            raise DataError(f"the connection to the hub was lost: {error}", self._name) from error

    def example(self, values: Mapping[str, object], split: str) -> Example:
        column, names = self._columns[split].get("label"), self._classes[split]
        if column is not None and names:
            number = values[column]
            if number is None or number == -1:
                if self._labelled:
                    raise DroppedRow("no gold label", "the class is -1")
                return super().example({**values, column: None}, split)
            if isinstance(number, int) and 0 <= number < len(names):
                values = {**values, column: names[number]}
        return super().example(values, split)

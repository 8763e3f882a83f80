"""Data sets of the Hugging Face hub by name, streamed; needs the extra `datasets`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Unpack

from genpool.data.column_reader import ColumnOptions, ColumnReader
from genpool.data.reader import Example
from genpool.data.rows import DroppedRow, Record
from genpool.errors import DataError, require_extra

# The hub's name for a dev set; SNLI has "validation", MultiNLI "validation_matched".
_HUB_DEV, _DEV = "validation", "dev"


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

    Raises:
        MissingExtraError: the extra `datasets` is not installed.
        DataError: the hub cannot be reached, or has no such data set.

    Example:
        >>> reader = HubReader("nyu-mll/glue", config="sst2")
        >>> reader.splits()
        ['train', 'dev', 'test']
    """

    def __init__(
        self,
        name: str,
        *,
        config: str | None = None,
        revision: str | None = None,
        **options: Unpack[ColumnOptions],
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
        """Returns the splits that the hub lists, in its order."""
        return list(self._hub_splits)

    @cached_property
    def _hub_splits(self) -> dict[str, str]:
        names = self._ask(self._hub.get_dataset_split_names)
        return {name.replace(_HUB_DEV, _DEV): name for name in names}

    def _ask(self, function: Any, **options: Any) -> Any:
        try:
            return function(self._name, self._config, revision=self._revision, **options)
        except (OSError, ValueError) as error:
            # No network, no such data set, or a config that must be named: the user can fix each.
            raise DataError(f"cannot be read from the hub: {error}", self._name) from error

    def records(self, split: str) -> Iterator[Record]:
        rows = self._ask(self._hub.load_dataset, split=self._hub_splits[split], streaming=True)
        features = rows.features
        for row, values in enumerate(self._fetch(rows), start=1):
            if row == 1:
                self._choose(split, list(values), self._name, None)
                column = self._columns[split].label
                names = getattr((features or {}).get(column), "names", None)
                self._classes[split] = tuple(names or ())
            yield Record(self._name, row, values)

    def _fetch(self, rows: Any) -> Iterator[Mapping[str, object]]:
        try:
            yield from rows
        except OSError as error:
            raise DataError(f"the connection to the hub was lost: {error}", self._name) from error

    def example(self, values: Mapping[str, object], split: str) -> Example:
        column, names = self._columns[split].label, self._classes[split]
        if column is not None and names:
            number = values[column]
            if number is None or number == -1:
                if self._labelled:
                    raise DroppedRow("no gold label", "the class is -1")
                return super().example({**values, column: None}, split)
            if isinstance(number, int) and 0 <= number < len(names):
                values = {**values, column: names[number]}
        return super().example(values, split)

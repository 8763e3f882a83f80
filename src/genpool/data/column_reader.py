"""What readers of tables share: the choice of columns, of labels, and the making of examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from genpool.data.base import Reader
from genpool.data.columns import Columns
from genpool.data.example import Example


class ColumnOptions(TypedDict, total=False):
    """The options of every reader of tables; see ColumnReader."""

    label: str | None
    first: str | None
    second: str | None
    score: str | None
    genre: str | None
    id: str | None
    labels: Sequence[str] | None
    labelled: bool
    tokenized: bool
    empty_texts: bool
    bad_rows: str


class ColumnReader(Reader):
    """A reader of rows with named columns.

    `label`, `first`, `second`, `score`, `genre` and `id` name columns; those left out are found
    by their usual names. `labels` are the labels that are allowed, in their order. With
    `labelled=False` a table without labels is read too (to predict them). With `tokenized` the
    texts are tokens joined by one space. With `empty_texts` an empty text is a sentence without
    tokens, and not a bad row.
    """

    def __init__(
        self,
        *,
        label: str | None = None,
        first: str | None = None,
        second: str | None = None,
        score: str | None = None,
        genre: str | None = None,
        id: str | None = None,
        labels: Sequence[str] | None = None,
        labelled: bool = True,
        tokenized: bool = False,
        empty_texts: bool = False,
        bad_rows: str = "error",
    ) -> None:
        super().__init__(bad_rows=bad_rows)
        self._wanted = Columns(label, first, second, score, genre, id)
        # Each split has its own: the test table of a competition has no column of labels.
        self._found: dict[str, Columns] = {}
        self._labels = None if labels is None else tuple(labels)
        self._labelled, self._tokenized, self._empty = labelled, tokenized, empty_texts

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The labels that were given; None where the training data decides."""
        return self._labels

    @property
    def is_pair(self) -> bool:
        """Whether there is a column for a second sentence, in the header of the first split."""
        if self._wanted.first is not None:
            return self._wanted.second is not None
        split = self.splits()[0]
        if split not in self._found:
            next(self._records(split), None)
        return split in self._found and self._found[split].second is not None

    def _choose(
        self, split: str, names: Sequence[str], path: Path | str, line: int | None
    ) -> list[str]:
        """Find the columns of a split's table, and say which of them are used."""
        columns = self._wanted.found_in(names, path, line, self._labelled)
        self._found[split] = columns
        return columns.names()

    def _example(self, values: Mapping[str, object], split: str) -> Example:
        columns = self._found[split]
        return columns.example(values, self.labels, self._labelled, self._tokenized, self._empty)

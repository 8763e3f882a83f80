"""What readers of tables share: choosing columns and labels, and making examples."""

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

    Args:
        label: the column of labels. Like the other columns, it is found by its usual names
            ("label", "gold_label") if None, the default.
        first: the column of sentences, or of first sentences of pairs.
        second: the column of second sentences of pairs; needs `first`.
        score: the column of similarity scores.
        genre: the column of genres.
        id: the column of identifiers.
        labels: the labels that are allowed, in their order. None (default) allows any.
        labelled: True (default) requires a column of labels or scores; False reads tables without
            one too, to predict them.
        tokenized: True if the texts are tokens joined by single spaces. Default False.
        empty_texts: True reads an empty text as a sentence without tokens; False (default) takes
            it for a bad row.
        bad_rows: "error" (default) or "skip"; see `Reader`.
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
        # Per split: the test table of a competition has no column of labels.
        self._columns: dict[str, Columns] = {}
        self._labels = None if labels is None else tuple(labels)
        self._labelled, self._tokenized, self._empty_texts = labelled, tokenized, empty_texts

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The option `labels`; None if the training data decides."""
        return self._labels

    @property
    def is_pair(self) -> bool:
        """Whether the first split has a column for a second sentence."""
        if self._wanted.first is not None:
            return self._wanted.second is not None
        split = self.splits()[0]
        if split not in self._columns:
            next(self._records(split), None)
        return split in self._columns and self._columns[split].second is not None

    def _choose(
        self, split: str, names: Sequence[str], path: Path | str, line: int | None
    ) -> list[str]:
        """Resolves the columns of a split and returns the names of those that are used."""
        columns = self._wanted.resolve(names, path, line, self._labelled)
        self._columns[split] = columns
        return columns.names()

    def _example(self, values: Mapping[str, object], split: str) -> Example:
        return self._columns[split].example(
            values, self.labels, self._labelled, self._tokenized, self._empty_texts
        )

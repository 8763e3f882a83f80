"""What readers of tables share: choosing columns and labels, and making examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from genpool.data.columns import Columns
from genpool.data.reader import Example, Reader
from genpool.errors import DataError, unknown_name


class ColumnOptions(TypedDict, total=False):
    """The options of every reader of tables; see ColumnReader."""

    label: str | None
    first: str | None
    second: str | None
    score: str | None
    genre: str | None
    id: str | None
    preferred: Mapping[str, str] | None
    labels: Sequence[str] | None
    labelled: bool
    tokenized: bool
    empty_texts: bool
    keep: Sequence[str]
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
        bad_rows: str = "error",
    ) -> None:
        super().__init__(path, bad_rows=bad_rows)
        self._wanted = Columns(label, first, second, score, genre, id)
        self._preferred = Columns.from_uses(preferred or {})
        # Per split: the test table of a competition has no column of labels.
        self._columns: dict[str, Columns] = {}
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
        if self._wanted.first is not None:
            return self._wanted.second is not None
        return "second" in self.columns(self.splits()[0])

    def columns(self, split: str) -> dict[str, str]:
        if split not in self._columns:
            self.check(split)
        return self._columns[split].uses() if split in self._columns else {}

    def _choose(
        self, split: str, names: Sequence[str], path: Path | str, line: int | None
    ) -> list[str]:
        """Resolves the columns of a split and returns the names of those that are used."""
        wanted = self._wanted.with_preferred(self._preferred, names)
        columns = wanted.resolve(names, path, line, self._labelled)
        self._columns[split] = columns
        for name in self.kept:
            if names.count(name) != 1:
                problem = (
                    f"column {name!r} appears {names.count(name)} times"
                    if name in names
                    else unknown_name("column", name, names)
                )
                raise DataError(problem, path, line)
        found = self._annotation_columns((columns.first, columns.second), names)
        extra = (name for name in found if name)
        return list(dict.fromkeys([*columns.names(), *extra, *self.kept]))

    def example(self, values: Mapping[str, object], split: str) -> Example:
        example = self._columns[split].example(
            values, self.labels, self._labelled, self._tokenized, self._empty_texts
        )
        if self.kept:
            # A line of JSON may lack a field: its value is empty.
            example = replace(example, kept=tuple(values.get(name) for name in self.kept))
        if self.annotator is None:
            return example
        texts = (self._columns[split].first, self._columns[split].second)
        return replace(example, annotations=self._annotations(texts, values))

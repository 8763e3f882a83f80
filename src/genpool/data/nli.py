"""What the official files of SNLI and MultiNLI share: their labels, columns and parses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from genpool.data.base import Reader, one_of
from genpool.data.example import Example
from genpool.data.folders import split_files
from genpool.data.formats import json_records, tsv_records
from genpool.data.rows import BadRow, DroppedRow, Record, label_of, plain, text_of
from genpool.disk.files import uncompressed_name
from genpool.errors import DataError, unknown_name

LABELS = ("entailment", "neutral", "contradiction")
# In a parse a bracket of the sentence is spelled out, since brackets are the tree's own signs.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_COLUMNS = {
    "parse": ("sentence1_binary_parse", "sentence2_binary_parse"),
    "raw": ("sentence1", "sentence2"),
}


class NliReader(Reader):
    """Reads a folder of official files, or one of them; JSON Lines is preferred to text.

    With `tokens="parse"` the sentences are the leaves of the binary parses, as in the paper; with
    `"raw"` they are the text as it was written. Pairs without a gold label ('-') are dropped and
    counted.
    """

    file_names: ClassVar[Mapping[str, Sequence[str]]]
    unlabelled: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, path: str | Path, *, tokens: str = "parse", bad_rows: str = "error") -> None:
        super().__init__(bad_rows=bad_rows)
        self._tokenized = one_of("tokens", tokens, _COLUMNS) == "parse"
        self._sides = _COLUMNS[tokens]
        self._place = Path(path)
        self._files = split_files(path, self.file_names)

    @property
    def labels(self) -> tuple[str, ...]:
        """Entailment, neutral, contradiction."""
        return LABELS

    @property
    def is_pair(self) -> bool:
        """Always: a premise and a hypothesis."""
        return True

    @property
    def place(self) -> Path:
        """The folder or the file."""
        return self._place

    def splits(self) -> list[str]:
        """The splits whose files are present, in the official order."""
        return list(self._files)

    def _absent(self, split: str) -> str:
        looked = " and ".join(self.file_names.get(split, ()))
        return super()._absent(split) + (f" Looked for {looked}." if looked else "")

    def _records(self, split: str) -> Iterator[Record]:
        path = self._files[split]
        choose = partial(self._choose, split)
        if uncompressed_name(path).endswith(".jsonl"):
            return json_records(path, choose)
        # The columns of the single annotators at the end are empty in most rows.
        return tsv_records(path, choose, short_rows=True)

    def _choose(self, split: str, names: Sequence[str], path: Path, line: int | None) -> list[str]:
        needed = self._sides if split in self.unlabelled else ("gold_label", *self._sides)
        for name in needed:
            if name not in names:
                raise DataError(unknown_name("column", name, names), path, line)
        return [*needed, *(name for name in ("pairID", "genre") if name in names)]

    def _example(self, values: Mapping[str, object], split: str) -> Example:
        label = None
        if split not in self.unlabelled:
            if values.get("gold_label") == "-":
                raise DroppedRow("no gold label", "the annotators did not agree")
            label = label_of(values, "gold_label", LABELS)
        first, second = (self._sentence(values, column) for column in self._sides)
        return Example(
            label=label,
            first=first,
            second=second,
            genre=plain(values.get("genre")),
            id=plain(values.get("pairID")),
            tokenized=self._tokenized,
        )

    def _sentence(self, values: Mapping[str, object], column: str) -> str:
        text = text_of(values, column)
        if not self._tokenized:
            return text
        tokens = leaves(text)
        if not tokens:
            raise BadRow("empty side", f"column {column!r} has no words; found {text!r}")
        return " ".join(tokens)


def leaves(parse: str) -> list[str]:
    """The words of a bracketed parse: "( ( A man ) sleeps )" gives A, man, sleeps."""
    return [_BRACKETS.get(token, token) for token in parse.split() if token not in ("(", ")")]

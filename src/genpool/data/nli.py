"""The official files of SNLI (Bowman et al. 2015) and MultiNLI (Williams et al. 2018)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from genpool.data import reader as rows
from genpool.data.columns import require_columns
from genpool.data.reader import BadRow, DroppedRow, Example, Reader, Record
from genpool.data.table_files import RowFile
from genpool.data.text_files import find_split_files, table_format
from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, unknown_name

LABELS = ("entailment", "neutral", "contradiction")
_NO_GOLD_LABEL = "-"
#: the test sets of MultiNLI, whose labels were never published
_TESTS = ("test_matched", "test_mismatched")
# In a parse a bracket of the sentence is spelled out, since brackets are the tree's own characters.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_COLUMNS = {
    "parse": ("sentence1_binary_parse", "sentence2_binary_parse"),
    "raw": ("sentence1", "sentence2"),
}


class NliReader(Reader):
    """Reads a folder of official NLI files, or one of them; JSON Lines is preferred to text.

    Args:
        path: the folder, or one of its files.
        tokens: "parse" (default) takes the sentences as the leaves of the binary parses, as the
            paper does; "raw" takes the text as it was written.
        labelled: True (default) drops the pairs without a gold label ("-") and counts them in
            `skipped`; False keeps them, with the label None, to predict them.
        **options: the options of `Reader`.
    """

    labels = LABELS
    is_pair = True
    file_names: ClassVar[Mapping[str, Sequence[str]]]
    #: splits whose labels were never published
    unlabelled: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, path: str | Path, *, tokens: str = "parse", labelled: bool = True, **options: Any
    ) -> None:
        super().__init__(path, **options)
        self._tokenized = rows.require_choice("tokens", tokens, _COLUMNS) == "parse"
        self._sides = _COLUMNS[tokens]
        self._labelled = labelled
        # The columns of the single annotators at the end are empty in most rows.
        self._files = {
            split: RowFile(file, kind=table_format(file) or ".tsv", short_rows=True)
            for split, file in find_split_files(path, self.file_names).items()
        }

    def splits(self) -> list[str]:
        return list(self._files)

    def _absent(self, split: str) -> str:
        expected = " and ".join(self.file_names.get(split, ()))
        return super()._absent(split) + (f" Looked for {expected}." if expected else "")

    def records(self, split: str) -> Iterator[Record]:
        return self._files[split].records(partial(self._choose, split))

    def _choose(self, split: str, names: Sequence[str], path: Path, line: int | None) -> list[str]:
        needed = self._sides if split in self.unlabelled else ("gold_label", *self._sides)
        no_parses = self._tokenized and not {*self._sides} <= {*names}
        hint = ["to read the raw sentences: --set reader.tokens=raw"] if no_parses else []
        require_columns(needed, names, path, line, hint)
        extra = self._annotation_columns(_COLUMNS["raw"], names)
        others = [name for name in ("pairID", "genre", *extra) if name in names]
        return list(dict.fromkeys([*needed, *others]))

    def example(self, values: Mapping[str, object], split: str) -> Example:
        label = None
        if split not in self.unlabelled and values.get("gold_label") != _NO_GOLD_LABEL:
            label = rows.parse_label(values, "gold_label", LABELS)
        elif split not in self.unlabelled and self._labelled:
            # Before the sentences: a pair that is dropped anyway may be damaged.
            raise DroppedRow("no gold label", "the annotators did not agree")
        first, second = (self._sentence(values, column) for column in self._sides)
        return Example(
            label=label,
            first=first,
            second=second,
            genre=rows.to_text(values.get("genre")),
            id=rows.to_text(values.get("pairID")),
            tokenized=self._tokenized,
            annotations=self._annotations(_COLUMNS["raw"], values),
        )

    def _sentence(self, values: Mapping[str, object], column: str) -> str:
        text = rows.parse_text(values, column)
        sentence = " ".join(leaves(text)) if self._tokenized else text
        if not sentence:
            raise BadRow("empty side", f"column {column!r} has no words; it holds {text!r}")
        return sentence


def leaves(parse: str) -> list[str]:
    """Returns the words of a bracketed parse: A, man, sleeps for "( ( A man ) sleeps )"."""
    return [_BRACKETS.get(token, token) for token in parse.split() if token not in ("(", ")")]


class SnliReader(NliReader):
    """Reads SNLI: 549,367 / 9,842 / 9,824 pairs once those without a gold label are dropped.

    The splits are train, dev and test; the path is the folder `snli_1.0` or one of its files, and
    the options are those of `NliReader`.
    """

    file_names: ClassVar[Mapping[str, Sequence[str]]] = {
        split: (f"snli_1.0_{split}.jsonl", f"snli_1.0_{split}.txt")
        for split in ("train", "dev", "test")
    }


def write_submission(path: str | Path, answers: Iterable[tuple[str | None, str]]) -> int:
    """Writes the file that the MultiNLI competition accepts and returns the number of its pairs.

    `answers` are the (pairID, predicted label) of every pair of a test set; InputError if one has
    no pairID, repeats one, or has a label that is not MultiNLI's. An existing file is replaced only
    when the new one is complete.
    """
    seen: set[str] = set()
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("pairID", "gold_label"))
        for pair, label in answers:
            if not pair or pair in seen:
                problem = "has no pairID" if not pair else f"repeats the pairID {pair!r}"
                raise InputError(f"answer {len(seen) + 1} {problem}; each pair is answered once")
            if label not in LABELS:
                raise InputError(f"pair {pair!r}: {unknown_name('label', label, LABELS)}")
            seen.add(pair)
            writer.writerow((pair, label))
    return len(seen)


class MultiNliReader(NliReader):
    """Reads MultiNLI, with the genre of each pair, and its pairID as the id of the example.

    The splits are train, dev_matched, dev_mismatched, and test_matched and test_mismatched, whose
    labels ("hidden" in the files) were never published: their examples have the label None. The
    answers to these are what `MultiNliReader.write_submission` writes. The path is the folder
    `multinli_1.0` or one of its files, and the options are those of `NliReader`.
    """

    # The test sets were published once, before version 1.0, and keep the old number.
    file_names: ClassVar[Mapping[str, Sequence[str]]] = {
        split: (f"multinli_{stem}.jsonl", f"multinli_{stem}.txt")
        for split, stem in {
            **{split: f"1.0_{split}" for split in ("train", "dev_matched", "dev_mismatched")},
            **{split: f"0.9_{split}_unlabeled" for split in _TESTS},
        }.items()
    }
    unlabelled: ClassVar[frozenset[str]] = frozenset(_TESTS)
    write_submission = staticmethod(write_submission)

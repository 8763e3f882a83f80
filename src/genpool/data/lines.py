"""Texts of a file or of standard input, one example per line, without labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from genpool.data.folders import require_existing
from genpool.data.reader import Example, Reader
from genpool.data.rows import BadRow, Record
from genpool.data.sentences import STANDARD_INPUT, read_sentences
from genpool.errors import counted

_LINE = "line"


class LinesReader(Reader):
    """Reads one example per line; an empty line is a text without words.

    Args:
        source: a text file, or "-" for standard input.
        is_pair: True if a line holds two sentences with a tab between them. Default False.
        bad_rows: "error" (default) or "skip"; see `Reader`.

    Raises:
        DataError: there is no such file.

    Example:
        >>> [example.first for example in LinesReader("reviews.txt").read("all")]
        ['I love this film.', 'What a waste of time.']
    """

    def __init__(
        self, source: str | Path, *, is_pair: bool = False, bad_rows: str = "error"
    ) -> None:
        super().__init__(STANDARD_INPUT if str(source) == "-" else Path(source), bad_rows=bad_rows)
        self._source = source if str(source) == "-" else require_existing(source)
        self._is_pair = is_pair

    @property
    def is_pair(self) -> bool:
        return self._is_pair

    def splits(self) -> list[str]:
        """Returns the only split, "all"."""
        return ["all"]

    def check(self, split: str | None = None) -> None:
        """Raises DataError if a split is absent; nothing is read: input can be read only once."""
        self._require_split(split or "all")

    def records(self, split: str) -> Iterator[Record]:
        for number, line in enumerate(read_sentences(self._source), start=1):
            yield Record(str(self.place), number, {_LINE: line})

    def example(self, values: Mapping[str, object], split: str) -> Example:
        line = str(values[_LINE])
        if not self._is_pair:
            return Example(None, line)
        sides = line.split("\t")
        if len(sides) != 2:
            problem = f"has {counted(len(sides), 'sentence')}; expected two with a tab between them"
            raise BadRow("wrong number of fields", problem)
        return Example(None, sides[0], sides[1])

"""The interface that all readers share: which splits there are, and a stream of examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from genpool.data.example import Example
from genpool.data.rows import BadRow, DroppedRow, Record
from genpool.errors import ConfigError, DataError, unknown_name

BAD_ROWS = ("error", "skip")
_REMEDY = (
    'mend the row, or leave such rows out with bad_rows="skip" (command line: --bad-rows skip)'
)


def one_of(setting: str, given: str, allowed: Iterable[str]) -> str:
    """The given value of a setting, which must be one of a few."""
    names = tuple(allowed)
    if given not in names:
        raise ConfigError(unknown_name(setting, given, names))
    return given


class Reader(ABC):
    """Reads one data set.

    A subclass says which splits it has, streams the rows of one, and turns a row into an example.
    What happens to bad rows is decided here: with `bad_rows="error"` the first one is a DataError
    with its file and line; with `"skip"` they are left out and counted by reason in `skipped`.
    """

    def __init__(self, *, bad_rows: str = "error") -> None:
        self.bad_rows = one_of("bad_rows", bad_rows, BAD_ROWS)
        self._counts: dict[str, Counter[str]] = {}

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The task's labels in their fixed order; None where the training data decides."""
        return None

    @property
    @abstractmethod
    def is_pair(self) -> bool:
        """Whether an example has two sentences."""

    @abstractmethod
    def splits(self) -> list[str]:
        """The names of the splits that are present."""

    @abstractmethod
    def _records(self, split: str) -> Iterator[Record]:
        """The rows of a split as they stand in its file."""

    @abstractmethod
    def _example(self, values: Mapping[str, object], split: str) -> Example:
        """A row as an example; raises BadRow where it cannot be one."""

    @property
    def skipped(self) -> Counter[str]:
        """How many rows the latest reading of each split left out, by reason."""
        return sum(self._counts.values(), Counter())

    @property
    def place(self) -> Path | str | None:
        """The file, folder or name that is read, for messages."""
        return None

    def read(self, split: str) -> Iterator[Example]:
        """The examples of a split, one in memory at a time."""
        if split not in self.splits():
            raise DataError(self._absent(split), self.place)
        return self._stream(split)

    def _absent(self, split: str) -> str:
        return unknown_name("split", split, self.splits())

    def _stream(self, split: str) -> Iterator[Example]:
        # A new counter each time, so that a second epoch does not count the same rows twice.
        counts = self._counts[split] = Counter()
        for record in self._records(split):
            try:
                if isinstance(record.values, BadRow):
                    raise record.values
                example = self._example(record.values, split)
            except BadRow as bad:
                if self.bad_rows == "error" and not isinstance(bad, DroppedRow):
                    problem = f"{bad.problem.rstrip('.')}; {_REMEDY}"
                    raise DataError(problem, record.path, record.line) from None
                counts[bad.reason] += 1
                continue
            yield example

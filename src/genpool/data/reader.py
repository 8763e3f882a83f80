"""From a row of a data set to an `Example`: the interface of all readers, and their registry."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, cast, get_args

from genpool.errors import ConfigError, DataError, InputError, unknown_name
from genpool.registry import Registry
from genpool.tensors.arrays import Annotation, Annotator

#: the usual splits, in the order of their use
SPLITS = ("train", "dev", "test")
#: the splits to score if a data set has several and none is named: the first that is present
SCORED_SPLITS = ("test", "dev")
BadRows = Literal["error", "skip"]
BAD_ROWS = get_args(BadRows)
#: what the error for a bad row advises
BAD_ROW_FIX = 'fix it, or leave such rows out with bad_rows="skip" (command line: --bad-rows skip)'


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence or a pair of sentences, with what is known about it.

    Args:
        label: the gold label; None for an unlabelled test set or a similarity task.
        first: the sentence, or the first of a pair.
        second: the second sentence of a pair.
        genre: the genre of the text.
        id: the identifier of the row in its data set.
        score: the gold score of a similarity task.
        tokenized: whether the texts are tokens joined by single spaces, to be split only there.
        annotations: of each sentence the integers per token that the data has for an encoder, or
            None (`Reader.annotator`). They do not count when examples are compared.
        kept: the values of the columns that a reader was asked to keep, as its table holds them.
            They do not count when examples are compared.

    Example:
        >>> Example("entailment", "A dog runs.", "An animal moves.")
    """

    label: str | None
    first: str
    second: str | None = None
    genre: str | None = None
    id: str | None = None
    score: float | None = None
    tokenized: bool = False
    annotations: tuple[Annotation | None, ...] = field(default=(), compare=False)
    kept: tuple[object, ...] = field(default=(), compare=False)


class BadRow(Exception):
    """A row that cannot be used: a short reason, which is counted, and a sentence for people.

    It travels as a value inside a `Record` until the reader decides: stop there, or skip it.
    """

    def __init__(self, reason: str, problem: str) -> None:
        self.reason, self.problem = reason, problem
        super().__init__(problem)


class DroppedRow(BadRow):
    """A row that the data set itself marks as not to be used: counted, never an error."""


class Record(NamedTuple):
    """One row of a file: its columns by name, or what is wrong with it."""

    path: Path | str  # the file, for messages
    line: int  # on which the row begins, from 1
    values: Mapping[str, object] | BadRow
    offset: int = -1  # of that line in the file; -1 where it is not known


def parse_text(values: Mapping[str, object], column: str, may_be_empty: bool = False) -> str:
    """Returns the text of a column; raises BadRow if it is not text, or empty and may not be."""
    value = _require_field(values, column)
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        kind = type(value).__name__
        raise BadRow("not text", f"column {column!r} holds a {kind}; expected text")
    text = "" if _is_missing(value) else str(value)
    if not text.strip() and not may_be_empty:
        raise BadRow("empty side", f"column {column!r} is empty; expected text")
    return text if text.isascii() else require_encodable(text, column)


def require_encodable(text: str, column: str) -> str:
    """Returns a text; raises BadRow if it cannot be written as UTF-8."""
    # JSON can spell half of a surrogate pair ("\ud83d"), which no tokenizer or file accepts.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        broken = f"U+{ord(text[error.start]):04X}"
        problem = f"column {column!r} holds half a character ({broken}) at position {error.start}"
        raise BadRow("bad UTF-8", problem) from None
    return text


def parse_label(values: Mapping[str, object], column: str, allowed: Sequence[str] | None) -> str:
    """Returns the label of a column; raises BadRow if it is empty or not one of `allowed`."""
    label = to_text(_require_field(values, column))
    if label is None:
        raise BadRow("no label", f"column {column!r} is empty; expected a label")
    if allowed is not None and label not in allowed:
        raise BadRow("unknown label", unknown_name("label", label, allowed))
    return label


def parse_score(values: Mapping[str, object], column: str) -> float:
    """Returns the number in a column; raises BadRow if it is not a finite number."""
    value = _require_field(values, column)
    try:
        score = float(value)  # type: ignore[arg-type]
    # JSON has integers of any size: one that no float can hold is an OverflowError.
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        shown = reprlib.repr(value)  # a long value is cut
        raise BadRow("bad score", f"column {column!r} holds {shown}; expected a finite number")
    return score


def to_text(value: object) -> str | None:
    """Returns a label, genre or id as text: 5, 5.0 and " 5 " are "5"; an empty value is None."""
    if _is_missing(value):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def _require_field(values: Mapping[str, object], column: str) -> object:
    # Only JSON can lack one: each of its lines names its own columns.
    if column not in values:
        fields = ", ".join(map(repr, values)) or "none"
        raise BadRow("missing field", f"there is no field {column!r}; this line has: {fields}")
    return values[column]


def _is_missing(value: object) -> bool:
    # Tables written by pandas mark an empty text cell with the number NaN.
    return value is None or (isinstance(value, float) and math.isnan(value))


def require_choice(setting: str, value: str, allowed: Iterable[str]) -> str:
    """Returns the value of a setting; raises ConfigError if it is not one of the allowed ones."""
    names = tuple(allowed)
    if value not in names:
        raise ConfigError(unknown_name(setting, value, names))
    return value


class Reader(ABC):
    """Reads one data set, split by split, as a stream of examples.

    A subclass has `is_pair`, lists its splits, streams the records of one, and turns the values of
    a record into an example; what happens to bad rows is decided here. Its options are keyword-only
    arguments with types, which recipes set by their names (`reader.bad_rows`).

    Args:
        path: the file, folder or name that is read. Default None, for data that is generated.
        bad_rows: "error" (default) raises DataError with file and line at the first row that
            cannot be used; "skip" leaves such rows out and counts them by reason in `skipped`.

    Raises:
        ConfigError: an option has a value that is not allowed.

    Example:
        >>> reader = open_reader("snli", "snli_1.0", bad_rows="skip")
        >>> reader.splits()
        ['train', 'dev', 'test']
        >>> for example in reader.read("dev"):
        ...     print(example.label, example.first, example.second)

        A reader of one's own, which a recipe names as `reader.name = "names"`:

        >>> @genpool.data.register("names")
        ... class NamesReader(Reader):
        ...     is_pair = False
        ...     def splits(self):
        ...         return ["train", "dev"]
        ...     def records(self, split):
        ...         path = Path(self.place) / f"{split}.txt"
        ...         for number, line in enumerate(path.read_text().splitlines(), start=1):
        ...             yield Record(path, number, {"line": line})
        ...     def example(self, values, split):
        ...         name, comma, label = values["line"].partition(",")
        ...         if not comma:
        ...             raise BadRow("no comma", "has no comma; expected name,label")
        ...         return Example(label, name)
    """

    #: whether the reader reads from a path; False if it generates its examples
    needs_path: ClassVar[bool] = True
    #: writes (id, label) pairs as the file that the competition of this data set accepts, and
    #: returns their number; None: it has no format
    write_submission: Callable[[str | Path, Iterable[tuple[str | None, str]]], int] | None = None

    def __init__(self, path: str | Path | None = None, *, bad_rows: BadRows = "error") -> None:
        #: the file, folder or name that is read, for messages
        self.place = path
        self.bad_rows = require_choice("bad_rows", bad_rows, BAD_ROWS)
        self._counts: dict[str, Counter[str]] = {}
        #: the first row that was left out as a bad one, as the error that it would have been
        self.first_skipped: DataError | None = None
        #: reads what an encoder needs beside the texts, such as parses; None: nothing is read
        self.annotator: type[Annotator] | None = None

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The labels of the task in their fixed order; None if the training data decides."""
        return None

    @property
    @abstractmethod
    def is_pair(self) -> bool:
        """Whether an example has two sentences."""

    @abstractmethod
    def splits(self) -> list[str]:
        """Returns the names of the splits that are present."""

    @abstractmethod
    def records(self, split: str) -> Iterator[Record]:
        """Yields the rows of a split as its file holds them.

        A row that cannot be read is a record with a `BadRow` in place of its values.
        """

    @abstractmethod
    def example(self, values: Mapping[str, object], split: str) -> Example:
        """Returns a row as an example; raises BadRow if it cannot be one."""

    @property
    def skipped(self) -> Counter[str]:
        """The number of rows that the latest pass over each split left out, by reason."""
        return sum(self._counts.values(), Counter())

    def read(self, split: str) -> Iterator[Example]:
        """Returns the examples of a split, in the order of its file, with one in memory at a time.

        Raises:
            DataError: the split is absent, its file cannot be read or, with `bad_rows="error"`,
                a row cannot be used.
        """
        self._require_split(split)
        return self._stream(split)

    def columns(self, split: str) -> dict[str, str]:
        """Returns the columns that a split is read from, by their use; empty if they have no names.

        The uses are "label", "first", "second", "score", "genre" and "id". DataError if the split
        is absent, unreadable or lacks a column.
        """
        return {}

    def check(self, split: str | None = None) -> None:
        """Raises DataError if a split, by default any, is absent, unreadable or lacks a column.

        Only the first row is read, so that a slow start, such as loading a model, can come later.
        """
        for name in self.splits() if split is None else [split]:
            next(self.records(self._require_split(name)), None)

    def choose_split(self, split: str | None = None, usual: Sequence[str] = ()) -> str:
        """Returns the name of the split to read.

        Args:
            split: the name of a split. None (default): the only one, or else a usual one.
            usual: names to choose from if there are several; the first that is present.

        Raises:
            DataError: there is no such split, or there are several and none was named.
        """
        if split is not None:
            return self._require_split(split)
        names = self.splits()
        present = names if len(names) == 1 else [name for name in usual if name in names]
        if not present:
            problem = f"has several splits: {', '.join(names)}; choose one"
            raise DataError(f"{problem}: split= (command line: --split NAME)", self.place)
        return present[0]

    def _annotation_columns(self, texts: Iterable[str], names: Collection[str]) -> list[str | None]:
        """Returns the column of annotations for each column of texts, None where there is none."""
        return [self.annotator.column(column, names) for column in texts] if self.annotator else []

    def _annotations(
        self, texts: Iterable[str], values: Mapping[str, object]
    ) -> tuple[Annotation | None, ...]:
        """Returns the annotation of each sentence of a row; raises BadRow if one is damaged."""
        if (kind := self.annotator) is None:
            return ()
        annotations: list[Annotation | None] = []
        for column in self._annotation_columns(texts, values):
            text = to_text(values.get(column)) if column else None
            try:
                annotations.append(kind.read(column, text) if column and text else None)
            except InputError as error:
                problem = f"column {column!r} cannot be read as {kind.name}: {error}"
                raise BadRow(f"bad {kind.name}", problem) from None
        return tuple(annotations)

    def _require_split(self, split: str) -> str:
        if split not in self.splits():
            raise DataError(self._absent(split), self.place)
        return split

    def _absent(self, split: str) -> str:
        return unknown_name("split", split, self.splits())

    def _stream(self, split: str) -> Iterator[Example]:
        # A new counter each time, so that a second epoch does not count the same rows twice.
        counts = self._counts[split] = Counter()
        for record in self.records(split):
            try:
                if isinstance(record.values, BadRow):
                    raise record.values
                example = self.example(record.values, split)
            except BadRow as bad:
                counts[bad.reason] += 1
                if isinstance(bad, DroppedRow):
                    continue
                if self.bad_rows == "error":
                    problem = f"{bad.problem.rstrip('.')}; {BAD_ROW_FIX}"
                    raise DataError(problem, record.path, record.line) from None
                skipped = DataError(bad.problem, record.path, record.line)
                self.first_skipped = self.first_skipped or skipped
            else:
                yield example


#: all readers by name; `genpool.data` adds those of the package, and `register` those of a plugin
READERS: Registry[Reader] = Registry("reader", Reader, {})  # type: ignore[type-abstract]
register = READERS.register


def open_reader(name: str, path: str | Path | Mapping[str, str | Path], **options: Any) -> Reader:
    """Returns a reader by name.

    Args:
        name: a name of `READERS`.
        path: the file or folder of the data set; for "hub" its name on the hub. A table reader
            also takes a file for each split, by the name of the split.
        **options: the options of that reader.

    Raises:
        ConfigError: the name, or any of the options, is unknown; all of them are reported
            together, before a file is opened.
        DataError: there is no such data.
    """
    reader = READERS.require(name)
    known = READERS.options(name)
    wrong = [unknown_name(f"{name} option", key, known) for key in options if key not in known]
    if wrong:
        raise ConfigError(wrong)
    return cast(Callable[..., Reader], reader)(path, **options)

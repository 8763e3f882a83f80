"""Columns chosen by name, or recognised by the names that tables of sentences usually have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from genpool.data.example import Example
from genpool.data.rows import parse_label, parse_score, parse_text, to_text
from genpool.errors import ConfigError, DataError, unknown_name

# The usual names, in lower case; the first that a table has is taken.
_PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b"))
_SINGLES = ("text", "sentence")
_LABEL = ("label", "gold_label")
_SCORE = ("score", "relatedness", "relatedness_score")
_GENRE = ("genre",)
_ID = ("id", "pairid", "pair_id")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what; None means "find it" before `resolve`, and "none" after it."""

    label: str | None = None
    first: str | None = None
    second: str | None = None
    score: str | None = None
    genre: str | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        if self.second is not None and self.first is None:
            raise ConfigError(
                f"second={self.second!r} needs first= as well: the column of the other sentence"
            )

    def names(self) -> list[str]:
        """Returns the columns that are used, without duplicates."""
        names = (getattr(self, field.name) for field in fields(self))
        return list(dict.fromkeys(name for name in names if name is not None))

    def resolve(
        self, names: Sequence[str], path: Path | str, line: int | None, labelled: bool
    ) -> Columns:
        """Returns these columns with every None looked up in the header of a table.

        Raises:
            DataError: a column that was named, a text, or (with `labelled`) a label is missing.
        """
        usual = {name.strip().lower(): name for name in reversed(names)}

        def find(wanted: str | None, choices: Sequence[str]) -> str | None:
            return wanted or next((usual[name] for name in choices if name in usual), None)

        first, second = self.first, self.second
        if first is None:
            pair = next((pair for pair in _PAIRS if set(pair) <= usual.keys()), None)
            first, second = (
                (usual[pair[0]], usual[pair[1]]) if pair else (find(None, _SINGLES), None)
            )
        label, score = find(self.label, _LABEL), find(self.score, _SCORE)
        genre, id_ = find(self.genre, _GENRE), find(self.id, _ID)
        columns = Columns(label, first, second, score, genre, id_)
        problem = columns._problem(names, labelled)
        if problem:
            raise DataError(problem + _delimiter_hint(names), path, line)
        return columns

    def _problem(self, names: Sequence[str], labelled: bool) -> str | None:
        header = f"this table has: {', '.join(map(repr, names)) or 'no columns'}"
        for name in self.names():
            if name not in names:
                return unknown_name("column", name, names)
            if names.count(name) > 1:
                return f"column {name!r} appears {names.count(name)} times; {header}"
        if self.first is None:
            usual = " or ".join(" and ".join(pair) for pair in (*_PAIRS, *((s,) for s in _SINGLES)))
            return f"no column of text was found ({usual}); {header}; {_naming('first', 'second')}"
        if labelled and self.label is None and self.score is None:
            usual = " or ".join((*_LABEL, *_SCORE))
            return f"no column of labels was found ({usual}); {header}; {_naming('label', 'score')}"
        return None

    def example(
        self,
        values: Mapping[str, object],
        labels: Sequence[str] | None,
        labelled: bool,
        tokenized: bool,
        empty_texts: bool = False,
    ) -> Example:
        """Returns a row as an example; without `labelled`, its label may be empty."""
        if self.first is None:
            raise ConfigError(
                "these columns have not been looked up in a table; call resolve first"
            )
        label, score = None, None
        if self.label is not None and (labelled or to_text(values.get(self.label)) is not None):
            label = parse_label(values, self.label, labels)
        if self.score is not None and (labelled or to_text(values.get(self.score)) is not None):
            score = parse_score(values, self.score)
        return Example(
            label=label,
            first=parse_text(values, self.first, empty_texts),
            second=None if self.second is None else parse_text(values, self.second, empty_texts),
            genre=None if self.genre is None else to_text(values.get(self.genre)),
            id=None if self.id is None else to_text(values.get(self.id)),
            score=score,
            tokenized=tokenized,
        )


def _naming(*options: str) -> str:
    """Returns how to set these options in Python, with evaluate and predict, and with train."""
    python = ", ".join(f"{name}=" for name in options)
    command = ", ".join(f"--{name}" for name in options)
    return f"name it: {python} (command line: {command}; train: --set reader.{options[0]}=NAME)"


def _delimiter_hint(names: Sequence[str]) -> str:
    if len(names) == 1 and any(delimiter in names[0] for delimiter in "\t,;|"):
        option = "delimiter= (command line: --set 'reader.delimiter=\";\"')"
        return f". Are the columns separated by another character? Name it: {option}"
    return ""

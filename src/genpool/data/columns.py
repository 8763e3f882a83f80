"""Columns chosen by name, or recognised by the names that tables of sentences usually have."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from genpool.data.reader import Example
from genpool.data.rows import parse_label, parse_score, parse_text, to_text
from genpool.errors import ConfigError, DataError, unknown_name

# The usual names, in lower case; the first that a table has is taken.
_PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b"))
_SINGLES = ("text", "sentence")
_LABEL = ("label", "gold_label")
_SCORE = ("score", "relatedness", "relatedness_score")
_GENRE = ("genre",)
_ID = ("id", "pairid", "pair_id")
# Words in the names of columns that are likely meant, to be suggested in messages.
_TEXT_WORDS = re.compile(
    "body|comment|content|description|document|message|post|question|query|review|sentence|summary"
    "|text|title|tweet|utterance"
)
_LABEL_WORDS = re.compile(
    "category|class|grade|intent|label|polarity|rating|score|sentiment|stars|tag|target|topic"
)


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

    @classmethod
    def from_uses(cls, uses: Mapping[str, str]) -> Columns:
        """Returns the columns of a mapping from uses ("label", "first", ...) to names.

        Raises:
            ConfigError: a use is unknown, or a second sentence has no first.
        """
        known = [field.name for field in fields(cls)]
        wrong = [unknown_name("use of a column", use, known) for use in uses if use not in known]
        if wrong:
            raise ConfigError(wrong)
        return cls(**uses)

    def uses(self) -> dict[str, str]:
        """Returns the names of the columns by their use, without those that are None."""
        names = {field.name: getattr(self, field.name) for field in fields(self)}
        return {use: name for use, name in names.items() if name is not None}

    def names(self) -> list[str]:
        """Returns the columns that are used, without duplicates."""
        return list(dict.fromkeys(self.uses().values()))

    def with_preferred(self, preferred: Columns, names: Sequence[str]) -> Columns:
        """Returns these columns, and for every None the preferred one if the table has it.

        Args:
            preferred: the other columns. The sentences are taken together or not at all.
            names: the header of the table.
        """
        free = [name for name in names if name not in self.names()]
        present = {use: name for use, name in preferred.uses().items() if name in free}
        sentences = {use for use in preferred.uses() if use in ("first", "second")}
        if self.first is not None or not sentences <= present.keys():
            present = {use: name for use, name in present.items() if use not in sentences}
        return Columns(**{**present, **self.uses()})

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
        """Returns everything that is wrong with these columns, or None."""
        header = f"this table has: {', '.join(map(repr, names)) or 'no columns'}"
        missing = [name for name in self.names() if name not in names]
        problems = [
            f"column {name!r} appears {names.count(name)} times"
            for name in self.names()
            if names.count(name) > 1
        ]
        options: list[str] = []
        likely: list[str] = []
        if self.first is None:
            usual = " or ".join(" and ".join(pair) for pair in (*_PAIRS, *((s,) for s in _SINGLES)))
            problems.append(f"no column of text was found ({usual})")
            options += ["first", "second"]
            likely += self._likely("first", names, _TEXT_WORDS)
        if labelled and self.label is None and self.score is None:
            problems.append(f"no column of labels was found ({' or '.join((*_LABEL, *_SCORE))})")
            options += ["label", "score"]
            likely += self._likely("label", names, _LABEL_WORDS)
        if len(missing) == 1 and not problems:
            return unknown_name("column", missing[0], names)
        if missing:
            problems.insert(0, f"unknown columns {', '.join(_nearest(n, names) for n in missing)}")
        if not problems:
            return None
        problems.append(header)
        if options:
            problems.append(_naming(*options))
        if likely:
            problems.append(f"perhaps {', '.join(likely)}")
        return "; ".join(problems)

    def _likely(self, use: str, names: Sequence[str], words: re.Pattern[str]) -> list[str]:
        """Returns the columns whose names suggest a use, as they are named."""
        used = self.names()
        return [
            f"{use}={name!r}" for name in names if name not in used and words.search(name.lower())
        ]

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


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)


def _naming(*options: str) -> str:
    """Returns how to set these options in Python and on the command line."""
    python = ", ".join(f"{name}=" for name in options)
    command = ", ".join(f"--{name}" for name in options)
    return f"name it: {python} (command line: {command})"


def _delimiter_hint(names: Sequence[str]) -> str:
    if len(names) == 1 and any(delimiter in names[0] for delimiter in "\t,;|"):
        option = "delimiter= (command line: --set 'reader.delimiter=\";\"')"
        return f". Are the columns separated by another character? Name it: {option}"
    return ""

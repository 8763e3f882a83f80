"""The sentences that a student learns from: tables, long texts and WordNet, in groups.

Sentences of one group belong together (a premise and its hypotheses, a definition and its
examples): they share a batch, so that the student also sees sentences that are close in meaning.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from genpool.data.sentences import read_sentences
from genpool.errors import ConfigError, DataError

#: sentences that belong together
Group = list[str]

_JOINED = re.compile(r" (n't|'(?:s|re|ve|ll|d|m)|[.,!?;:%)\]])(?= |$)", re.IGNORECASE)
_OPENED = re.compile(r"([(\[$]) (?=\S)")
_MARKUP = re.compile(r"<br\s*/?>", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_LETTERS = re.compile(r"[^a-z0-9]+")
_EXAMPLE = re.compile(r'"([^"]+)"')


@dataclass(frozen=True)
class CorpusSettings:
    """Which sentences are learned from. Files are found below the folder of the data.

    tables    "FILE:COLUMN,COLUMN": every cell is a sentence, rows with the same first cell a group
    texts     "FILE:COLUMN:SENTENCES": long texts, cut into sentences, at most so many of them
    wordnet   a folder with WordNet's data.noun, data.verb, data.adj and data.adv; "" for none
    left_out  "FILE:COLUMN,COLUMN": sentences that must not be learned from, in whatever case,
              spacing or punctuation they stand elsewhere
    shortest  words that a sentence must have
    longest   words that it may have
    """

    tables: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    wordnet: str | None = None
    left_out: tuple[str, ...] = ()
    shortest: int = 3
    longest: int = 50


def read_corpus(settings: CorpusSettings, data: Path, seed: int = 0) -> list[Group]:
    """All groups; no sentence stands twice, and none that is left out stands at all."""
    seen = {
        bare(sentence)
        for entry in settings.left_out
        for row in _rows(entry, data)
        for sentence in row
    }
    groups: list[Group] = []
    for entry in settings.tables:
        groups += _fresh(_by_first(_rows(entry, data)), seen, settings)
    for entry in settings.texts:
        place, _, limit = entry.rpartition(":")
        if not limit.isdigit():
            raise ConfigError(
                f"corpus.texts has {entry!r}; expected FILE:COLUMN:SENTENCES, with a number."
            )
        paragraphs = [sentences_of(text) for row in _rows(place, data) for text in row]
        random.Random(seed).shuffle(paragraphs)
        groups += _at_most(int(limit), _fresh(paragraphs, seen, settings))
    if settings.wordnet:
        groups += _fresh(_wordnet(Path(settings.wordnet)), seen, settings)
    if not groups:
        raise DataError("the corpus has no sentence; see its settings tables, texts and wordnet")
    return groups


def untokenized(text: str) -> str:
    """Text whose tokens stand apart, as people write it: "It 's red ." is "It's red."."""
    text = " ".join(text.split()).replace("``", '"').replace("''", '"')
    text = text.replace("-LRB-", "(").replace("-RRB-", ")")
    return _OPENED.sub(r"\1", _JOINED.sub(r"\1", text))


def sentences_of(text: str) -> list[str]:
    """A long text cut where a full stop is followed by a capital letter or a number."""
    paragraphs = _MARKUP.split(text)
    return [each for paragraph in paragraphs for each in _SENTENCE_END.split(paragraph.strip())]


def bare(sentence: str) -> str:
    """A sentence without case, spaces and punctuation: how sameness is decided."""
    return _LETTERS.sub("", sentence.lower())


def _rows(entry: str, data: Path) -> Iterator[tuple[str, ...]]:
    name, colon, columns = entry.rpartition(":")
    if not colon or not name or not columns:
        raise ConfigError(f"the corpus has {entry!r}; expected FILE:COLUMN or FILE:COLUMN,COLUMN.")
    sides = [read_sentences(data / name, column) for column in columns.split(",")]
    return zip(*sides, strict=True)


def _by_first(rows: Iterable[tuple[str, ...]]) -> Iterable[Group]:
    groups: dict[str, Group] = {}
    for row in rows:
        groups.setdefault(row[0], [row[0]]).extend(row[1:])
    return groups.values()


def _fresh(groups: Iterable[Group], seen: set[str], settings: CorpusSettings) -> Iterator[Group]:
    """Groups without the sentences that were seen before, nor too short or too long ones."""
    for group in groups:
        kept = []
        for sentence in map(untokenized, group):
            key = bare(sentence)
            if key in seen or not settings.shortest <= len(sentence.split()) <= settings.longest:
                continue
            seen.add(key)
            kept.append(sentence)
        if kept:
            yield kept


def _at_most(limit: int, groups: Iterable[Group]) -> Iterator[Group]:
    count = 0
    for group in groups:
        if count >= limit:
            return
        yield group[: limit - count]
        count += len(group)


def _wordnet(folder: Path) -> Iterator[Group]:
    """A definition and its example sentences, for every meaning in WordNet's data files."""
    for name in ("data.noun", "data.verb", "data.adj", "data.adv"):
        path = folder / name
        if not path.is_file():
            raise DataError("WordNet's data file is missing; corpus.wordnet names its folder", path)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(" ") or " | " not in line:
                continue  # the licence at the head
            gloss = line.split(" | ", 1)[1]
            definition = _EXAMPLE.sub("", gloss).strip(" ;")
            yield [definition, *_EXAMPLE.findall(gloss)]

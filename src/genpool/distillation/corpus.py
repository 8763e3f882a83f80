"""The sentences that a student is trained on: tables, long texts and WordNet, in groups.

Sentences of one group belong together (a premise and its hypotheses, a definition and its
examples): they share a batch, so that the student also sees sentences that are close in meaning.
"""

from __future__ import annotations

import json
import random
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from genpool.data.sentences import read_sentences
from genpool.errors import ConfigError, DataError

#: sentences that belong together
Group = list[str]

#: sentences to learn from in the order of a table, and those held out, by source
Mixture = tuple[list[str], dict[str, list[str]]]

#: the source of a count that is for all sources without one of their own
OTHERS = "*"

WORDNET_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")

_SPACE_BEFORE = re.compile(r" (n't|'(?:s|re|ve|ll|d|m)|[.,!?;:%)\]])(?= |$)", re.IGNORECASE)
_SPACE_AFTER = re.compile(r"([(\[$]) (?=\S)")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")
_WORDNET_EXAMPLE = re.compile(r'"([^"]+)"')


@dataclass(frozen=True)
class CorpusSettings:
    """Which sentences the student is trained on. Files are found below the folder of the data.

    Attributes:
        tables: "FILE:COLUMN,COLUMN" entries. Every cell is a sentence; rows with the same first
            cell form a group. "FILE:COLUMN,COLUMN:SENTENCES" uses no more than so many.
            Default: none.
        texts: "FILE:COLUMN:SENTENCES" entries: long texts, split into sentences, with the maximum
            number of sentences to use. Default: none.
        wordnet: folder with WordNet's data.noun, data.verb, data.adj and data.adv, whose
            definitions and examples are used. Default: None.
        mixed: "FILE:SOURCE,TEXT": a table of sentences of many sources. Default: None.
        counts: "SOURCE=COUNT" entries: sentences of each source of it, "*=COUNT" for all others.
            Default: none.
        skip: "SOURCE=COUNT" entries: sentences of a source that are passed over first, such as
            those that an earlier recipe has learned. Default: none.
        held_out: sentences of each source that are not learned, but scored. Default: 0.
        exclude: "FILE:COLUMN,COLUMN" entries: sentences that are left out wherever they occur,
            whatever their case, spacing and punctuation. Default: none.
        min_words: words that a sentence needs. Default: 3.
        max_words: words that a sentence may have. Default: 50.
    """

    tables: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    wordnet: str | None = None
    mixed: str | None = None
    counts: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    held_out: int = field(default=0, metadata={"minimum": 0})
    exclude: tuple[str, ...] = ()
    min_words: int = field(default=3, metadata={"minimum": 0})
    max_words: int = field(default=50, metadata={"minimum": 1})


@dataclass(frozen=True)
class Corpus:
    """Groups to learn from, and sentences by source that are never learned, but scored."""

    groups: list[Group]
    held_out: dict[str, list[str]] = field(default_factory=dict)


def read_corpus(settings: CorpusSettings, data: Path, seed: int = 0) -> Corpus:
    """Returns all groups of files below `data`; no sentence occurs twice, and no excluded one.

    The seed decides which of the long texts are used. ConfigError for an entry of the settings that
    is malformed, DataError for a file that cannot be read or an empty corpus.
    """
    seen = {
        comparison_key(sentence)
        for entry in settings.exclude
        for row in _rows(entry, data)
        for sentence in row
    }
    groups: list[Group] = []
    # First, so that none is held out that is learned from another table.
    mixed, held_out = _read_mixture(settings, data, seen)
    for entry in settings.tables:
        table, _, limit = entry.rpartition(":")
        has_limit = limit.isdigit() and ":" in table
        by_first: dict[str, Group] = {}
        for row in _rows(table if has_limit else entry, data):
            by_first.setdefault(row[0], [row[0]]).extend(row[1:])
        kept = _new_sentences(by_first.values(), seen, settings)
        groups += _at_most(int(limit), kept) if has_limit else kept
    for entry in settings.texts:
        table, _, limit = entry.rpartition(":")
        if not limit.isdigit():
            raise ConfigError(
                f"corpus.texts has {entry!r}; expected FILE:COLUMN:SENTENCES, with a number."
            )
        texts = [split_sentences(text) for row in _rows(table, data) for text in row]
        random.Random(seed).shuffle(texts)
        groups += _at_most(int(limit), _new_sentences(texts, seen, settings))
    if settings.wordnet:
        groups += _new_sentences(_wordnet(Path(settings.wordnet)), seen, settings)
    groups += [[sentence] for sentence in mixed]
    if not groups:
        raise DataError(
            "the corpus has no sentence; see its settings tables, texts, mixed and wordnet"
        )
    return Corpus(groups, held_out)


def _read_mixture(settings: CorpusSettings, data: Path, seen: set[str]) -> Mixture:
    """Returns the sentences of the mixed table to learn from, and those held out, by source."""
    if settings.mixed is None:
        return [], {}

    def keep(text: str) -> str | None:
        if text.startswith("{"):  # a record in JSON that was taken for a sentence
            return None
        return next(iter(next(_new_sentences([[text]], seen, settings), [])), None)

    counts = read_counts(settings.counts) or {OTHERS: sys.maxsize}
    skip = read_counts(settings.skip, "corpus.skip")
    return take_mixture(_rows(settings.mixed, data), counts, settings.held_out, keep, skip)


def read_counts(entries: Iterable[str], setting: str = "corpus.counts") -> dict[str, int]:
    """Returns the counts of "SOURCE=COUNT" entries; ConfigError with every malformed one."""
    counts, problems = {}, []
    for entry in entries:
        source, equals, count = entry.rpartition("=")
        if not (equals and source and count.isdigit()):
            problems.append(f"{setting} has {entry!r}; expected SOURCE=COUNT, or *=COUNT.")
        else:
            counts[source] = int(count)
    if problems:
        raise ConfigError(problems)
    return counts


def take_mixture(
    rows: Iterable[tuple[str, ...]],
    counts: dict[str, int],
    held_out: int,
    keep: Callable[[str], str | None],
    skip: Mapping[str, int] | None = None,
) -> Mixture:
    """Returns the first sentences of every source: `held_out` to score the student on, then `skip`
    that are passed over, then `counts` to learn from.

    `rows` are source and sentence. No more of them are read than needed, as long as every source
    has a count of its own. `keep` returns a sentence as it is learned, None if it is left out.
    """
    skip, learned, dev = skip or {}, list[str](), dict[str, list[str]]()
    taken, skipped = Counter[str](), Counter[str]()
    for number, (source, text, *_) in enumerate(rows):
        is_checked = OTHERS not in counts and number % 1024 == 0
        if is_checked and all(taken[name] >= count for name, count in counts.items()):
            break
        wanted = counts.get(source, counts.get(OTHERS, 0))
        if not wanted:
            continue
        scored = dev.setdefault(source, [])
        if taken[source] >= wanted or (kept := keep(text)) is None:
            continue
        if len(scored) < held_out:
            scored.append(kept)
        elif skipped[source] < skip.get(source, skip.get(OTHERS, 0)):
            skipped[source] += 1
        else:
            learned.append(kept)
            taken[source] += 1
    return learned, dev


def corpus_fingerprint(groups: Iterable[Group], dev: Path | None) -> int:
    """Returns a checksum of the sentences, their grouping, and the dev file if there is one."""
    value = 0
    for group in groups:
        value = zlib.crc32(json.dumps(group).encode(), value)
    if dev is not None and dev.is_file():
        value = zlib.crc32(dev.read_bytes(), value)
    return value


def untokenized(text: str) -> str:
    """Returns tokenized text with its usual spacing: "It 's red ." becomes "It's red."."""
    text = " ".join(text.split()).replace("``", '"').replace("''", '"')
    text = text.replace("-LRB-", "(").replace("-RRB-", ")")
    return _SPACE_AFTER.sub(r"\1", _SPACE_BEFORE.sub(r"\1", text))


def split_sentences(text: str) -> list[str]:
    """Splits a long text where a full stop is followed by a capital letter or a digit."""
    return [
        sentence
        for paragraph in _LINE_BREAK.split(text)
        for sentence in _SENTENCE_END.split(paragraph.strip())
    ]


def comparison_key(sentence: str) -> str:
    """Returns a sentence without case, spaces and punctuation: equal keys are the same sentence."""
    return _NOT_ALPHANUMERIC.sub("", sentence.lower())


def _rows(entry: str, data: Path) -> Iterator[tuple[str, ...]]:
    name, colon, columns = entry.rpartition(":")
    if not colon or not name or not columns:
        raise ConfigError(f"the corpus has {entry!r}; expected FILE:COLUMN or FILE:COLUMN,COLUMN.")
    sides = [read_sentences(data / name, column) for column in columns.split(",")]
    return zip(*sides, strict=True)


def _new_sentences(
    groups: Iterable[Group], seen: set[str], settings: CorpusSettings
) -> Iterator[Group]:
    """Yields the groups without sentences that are too short or too long or were seen before."""
    for group in groups:
        kept = []
        for sentence in map(untokenized, group):
            key, words = comparison_key(sentence), len(sentence.split())
            if key in seen or not settings.min_words <= words <= settings.max_words:
                continue
            seen.add(key)
            kept.append(sentence)
        if kept:
            yield kept


def _at_most(limit: int, groups: Iterable[Group]) -> Iterator[Group]:
    """Yields the first groups that have `limit` sentences together; the last one may be cut."""
    count = 0
    for group in groups:
        if count >= limit:
            return
        yield group[: limit - count]
        count += len(group)


def _wordnet(folder: Path) -> Iterator[Group]:
    """Yields the definition and the example sentences of every meaning in WordNet."""
    for name in WORDNET_FILES:
        path = folder / name
        if not path.is_file():
            raise DataError("WordNet's data file is missing; corpus.wordnet names its folder", path)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(" ") or " | " not in line:
                continue  # the licence at the head
            gloss = line.split(" | ", 1)[1]
            definition = _WORDNET_EXAMPLE.sub("", gloss).strip(" ;")
            yield [definition, *_WORDNET_EXAMPLE.findall(gloss)]

"""The sentences that a student is trained on: tables, long texts and WordNet, in groups.

Sentences of one group belong together (a premise and its hypotheses, a definition and its
examples): they share a batch, so that the student also sees sentences that are close in meaning.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from genpool.data.sentences import read_sentences
from genpool.distillation.settings import CorpusSettings
from genpool.errors import ConfigError, DataError

#: sentences that belong together
Group = list[str]

#: the source of a count that is for all sources without one of their own
OTHERS = "*"

_SPACE_BEFORE = re.compile(r" (n't|'(?:s|re|ve|ll|d|m)|[.,!?;:%)\]])(?= |$)", re.IGNORECASE)
_SPACE_AFTER = re.compile(r"([(\[$]) (?=\S)")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")
#: FILE:COLUMN,COLUMN:SENTENCES
_ENTRY = re.compile(r"(.+?):([^:]+)(?::(\d+))?")
_WORDNET_EXAMPLE = re.compile(r'"([^"]+)"')


class Corpus(NamedTuple):
    """Groups to learn from, and sentences by source that are never learned, but scored."""

    groups: list[Group]
    held_out: dict[str, list[str]]


def read_corpus(settings: CorpusSettings, data: Path, seed: int = 0) -> Corpus:
    """Returns all groups of files below `data`; no sentence occurs twice, and no excluded one. The
    seed decides which of the long texts are used."""
    reader = _CorpusReader(settings, data)
    # First, so that none is held out that is learned from another table.
    mixed, held_out = reader.read_mixed()
    groups: list[Group] = []
    for entry in settings.tables:
        rows, limit = reader.rows(entry)
        by_first: dict[str, Group] = {}
        for first, *others in rows:
            by_first.setdefault(first, [first]).extend(others)
        groups += reader.new_groups(by_first.values(), limit)
    for entry in settings.texts:
        rows, limit = reader.rows(entry)
        texts = [split_sentences(text) for row in rows for text in row]
        random.Random(seed).shuffle(texts)
        groups += reader.new_groups(texts, limit)
    if settings.wordnet:
        groups += reader.new_groups(_wordnet(Path(settings.wordnet)))
    groups += [[sentence] for sentence in mixed]
    if not groups:
        raise DataError(
            "the corpus has no sentence; see its settings tables, texts, mixed and wordnet"
        )
    return Corpus(groups, held_out)


class _CorpusReader:
    """Reads the files of a corpus, and remembers which sentences it has returned."""

    def __init__(self, settings: CorpusSettings, data: Path) -> None:
        self.settings, self.data = settings, data
        excluded = (row for entry in settings.exclude for row in self.rows(entry)[0])
        self.seen = {comparison_key(sentence) for row in excluded for sentence in row}

    def rows(self, entry: str) -> tuple[Iterator[tuple[str, ...]], int]:
        """Returns the rows of "FILE:COLUMN,COLUMN:SENTENCES" and the number of sentences to use,
        which may be left out."""
        if (parts := _ENTRY.fullmatch(entry)) is None:
            raise ConfigError(
                f"the corpus has {entry!r}; expected FILE:COLUMN or FILE:COLUMN,COLUMN, and "
                "perhaps :SENTENCES, the number of sentences to use."
            )
        sides = [read_sentences(self.data / parts[1], column) for column in parts[2].split(",")]
        return zip(*sides, strict=True), int(parts[3] or sys.maxsize)

    def new_sentence(self, text: str) -> str | None:
        """Returns a sentence as it is learned; None if it is too short, too long or not new."""
        sentence = untokenized(text)
        key, words = comparison_key(sentence), len(sentence.split())
        if key in self.seen or not self.settings.min_words <= words <= self.settings.max_words:
            return None
        self.seen.add(key)
        return sentence

    def new_groups(self, groups: Iterable[Group], limit: int = sys.maxsize) -> Iterator[Group]:
        """Yields the new sentences of each group, up to `limit`; the last group may be cut."""
        for group in groups:
            if limit <= 0:
                return
            if kept := [new for text in group if (new := self.new_sentence(text)) is not None]:
                yield kept[:limit]
                limit -= len(kept)

    def read_mixed(self) -> tuple[list[str], dict[str, list[str]]]:
        """Returns the sentences of the mixed table to learn from, and those held out, by source.

        Of each source the first new sentences are held out, then `skip` are passed over, then
        `counts` are learned.
        """
        learned: list[str] = []
        held_out: dict[str, list[str]] = {}
        rows = self.rows(self.settings.mixed)[0] if self.settings.mixed else ()
        counts = read_counts(self.settings.counts, "corpus.counts") or {OTHERS: sys.maxsize}
        skip = read_counts(self.settings.skip, "corpus.skip")
        used = Counter[str]()
        for source, text, *_ in rows:
            count = counts.get(source, counts.get(OTHERS, 0))
            start = self.settings.held_out + skip.get(source, skip.get(OTHERS, 0))
            # A text that begins with a brace is a record in JSON, not a sentence.
            is_read = count and used[source] < start + count and not text.startswith("{")
            if not is_read or (sentence := self.new_sentence(text)) is None:
                continue
            if used[source] < self.settings.held_out:
                held_out.setdefault(source, []).append(sentence)
            elif used[source] >= start:
                learned.append(sentence)
            used[source] += 1
        return learned, held_out


def read_counts(entries: Iterable[str], setting: str) -> dict[str, int]:
    """Returns the counts of "SOURCE=COUNT" entries; ConfigError with every malformed one."""
    parts = {entry: re.fullmatch(r"(.+)=(\d+)", entry) for entry in entries}
    if wrong := [entry for entry in parts if not parts[entry]]:
        problem = f"{setting} has {{!r}}; expected SOURCE=COUNT, or *=COUNT."
        raise ConfigError(problem.format(entry) for entry in wrong)
    return {part[1]: int(part[2]) for part in parts.values() if part}


def untokenized(text: str) -> str:
    """Returns tokenized text with its usual spacing: "It 's red ." becomes "It's red."."""
    text = " ".join(text.split()).replace("``", '"').replace("''", '"')
    text = text.replace("-LRB-", "(").replace("-RRB-", ")")
    return _SPACE_AFTER.sub(r"\1", _SPACE_BEFORE.sub(r"\1", text))


def split_sentences(text: str) -> list[str]:
    """Splits a long text where a full stop is followed by a capital letter or a digit."""
    paragraphs = (paragraph.strip() for paragraph in _LINE_BREAK.split(text))
    return [sentence for paragraph in paragraphs for sentence in _SENTENCE_END.split(paragraph)]


def comparison_key(sentence: str) -> str:
    """Returns a sentence without case, spaces and punctuation: equal keys are the same sentence."""
    return _NOT_ALPHANUMERIC.sub("", sentence.lower())


def _wordnet(folder: Path) -> Iterator[Group]:
    """Yields the definition and the example sentences of every meaning in WordNet."""
    for kind in ("noun", "verb", "adj", "adv"):
        path = folder / f"data.{kind}"
        if not path.is_file():
            raise DataError("WordNet's data file is missing; corpus.wordnet names its folder", path)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(" ") or " | " not in line:
                continue  # the licence at the head
            gloss = line.split(" | ", 1)[1]
            definition = _WORDNET_EXAMPLE.sub("", gloss).strip(" ;")
            yield [definition, *_WORDNET_EXAMPLE.findall(gloss)]

"""A table of sentences of many sources, of which each gives a number, and some are held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from genpool.errors import ConfigError

#: the source of a count that is for all sources without one of their own
OTHERS = "*"

#: keeps a sentence as it is learned, or returns None for one that is left out
Keep = Callable[[str], str | None]


@dataclass
class Mixture:
    """What was taken from a table.

    Attributes:
        sentences: to learn from, in the order of the table.
        held_out: by source, to score the student on.
    """

    sentences: list[str] = field(default_factory=list)
    held_out: dict[str, list[str]] = field(default_factory=dict)


def read_counts(entries: Iterable[str], setting: str = "corpus.counts") -> dict[str, int]:
    """Returns the counts of "SOURCE=COUNT" entries.

    Args:
        entries: the entries.
        setting: where they are from, for messages. Default: "corpus.counts".

    Raises:
        ConfigError: with every entry that is malformed.
    """
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
    keep: Keep,
    skip: Mapping[str, int] | None = None,
) -> Mixture:
    """Returns the first sentences of every source.

    Args:
        rows: source and sentence of every row. No more of them are read than needed, as long as
            every source has a count of its own.
        counts: sentences to learn from, by source; `OTHERS` for every source without a count.
        held_out: sentences of every source that come before them, to score the student on.
        keep: returns a sentence as it is learned, or None for one to leave out.
        skip: sentences of a source between the two that are passed over. Default: None, none.
    """
    skip = skip or {}
    mixture, taken, skipped = Mixture(), Counter[str](), Counter[str]()
    for source, text in _until_full(rows, counts, taken):
        wanted = counts.get(source, counts.get(OTHERS, 0))
        dev = mixture.held_out.setdefault(source, []) if wanted else []
        if not wanted or taken[source] >= wanted:
            continue
        kept = keep(text)
        if kept is None:
            continue
        if len(dev) < held_out:
            dev.append(kept)
            continue
        if skipped[source] < skip.get(source, skip.get(OTHERS, 0)):
            skipped[source] += 1
            continue
        mixture.sentences.append(kept)
        taken[source] += 1
    return mixture


def _until_full(
    rows: Iterable[tuple[str, ...]], counts: dict[str, int], taken: Counter[str]
) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(rows):
        is_checked = OTHERS not in counts and number % 1024 == 0
        if is_checked and all(taken[source] >= count for source, count in counts.items()):
            return
        yield row[0], row[1]

"""A data set as arrays of integers: small in memory, whatever its size in text."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from genpool.data.example import Example
from genpool.text import Batch, WordTable

Ints = NDArray[np.int32]
#: (sentence, whether it is tokenised already) -> its words
Words = Callable[[str, bool], list[str]]


class Types:
    """The distinct words of a text, by order of appearance."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, word: str) -> int:
        return self.numbers.setdefault(word, len(self.numbers))

    def counts(self, tokens: Ints) -> Counter[str]:
        """How often each word stands among the tokens."""
        found = np.bincount(tokens, minlength=len(self.numbers))
        return Counter(
            {word: int(count) for word, count in zip(self.numbers, found, strict=True) if count}
        )


@dataclass
class Split:
    """Examples of one split.

    tokens   (tokens,)             word numbers of all sentences, one after the other
    starts   (sentences + 1,)      where each sentence begins
    labels   (examples,)           -1 where there is none
    sides                          sentences per example: sentence s of example e is e * sides + s
    """

    tokens: Ints
    starts: NDArray[np.int64]
    labels: NDArray[np.int64]
    sides: int
    ids: list[str] = field(default_factory=list)
    genres: list[str | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(examples, sides): tokens of each sentence."""
        return np.diff(self.starts).reshape(-1, self.sides)

    def sentence(self, number: int) -> Ints:
        return self.tokens[self.starts[number] : self.starts[number + 1]]

    def take(self, examples: Sequence[int] | NDArray[np.int64]) -> Split:
        """Some of the examples, in the order given."""
        chosen = np.asarray(examples, dtype=np.int64)
        sentences = (chosen[:, None] * self.sides + np.arange(self.sides)).ravel()
        pieces = [self.sentence(number) for number in sentences.tolist()]
        lengths = [len(piece) for piece in pieces]
        return Split(
            np.concatenate([*pieces, np.empty(0, np.int32)]),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            self.labels[chosen],
            self.sides,
            [self.ids[number] for number in chosen],
            [self.genres[number] for number in chosen],
        )

    def batch(self, examples: Sequence[int] | NDArray[np.int64], table: WordTable) -> Batch:
        """One batch for all sides: first all first sentences, then all second ones."""
        sentences = [
            int(example) * self.sides + side for side in range(self.sides) for example in examples
        ]
        return table.batch([self.sentence(number) for number in sentences])

    def renumbered(self, table: WordTable, types: Types, sentence_ends: bool) -> Split:
        """The same split in the numbers of a word table, with begin and end tokens if wanted."""
        places = np.array([table.place(word) for word in types.numbers], dtype=np.int32)
        tokens, starts = places[self.tokens], self.starts
        if sentence_ends:
            tokens = np.insert(tokens, starts[1:], table.end)
            begins = starts[:-1] + np.arange(len(starts) - 1)
            tokens = np.insert(tokens, begins, table.begin)
            starts = starts + 2 * np.arange(len(starts))
        return Split(tokens, starts, self.labels, self.sides, self.ids, self.genres)


def read_split(
    examples: Iterable[Example],
    types: Types,
    words: Words,
    label_number: Callable[[str | None], int],
) -> Split:
    """Streams examples into a split."""
    tokens, starts, labels = array("i"), array("q", [0]), array("q")
    ids: list[str] = []
    genres: list[str | None] = []
    sides = 1
    for row, example in enumerate(examples):
        sentences = [example.first]
        if example.second is not None:
            sentences.append(example.second)
        sides = len(sentences)
        for sentence in sentences:
            tokens.extend(map(types, words(sentence, example.tokenized)))
            starts.append(len(tokens))
        labels.append(label_number(example.label))
        ids.append(example.id or str(row))
        genres.append(example.genre)
    return Split(
        np.frombuffer(tokens, dtype=np.int32) if tokens else np.empty(0, np.int32),
        np.frombuffer(starts, dtype=np.int64),
        np.frombuffer(labels, dtype=np.int64) if labels else np.empty(0, np.int64),
        sides,
        ids,
        genres,
    )

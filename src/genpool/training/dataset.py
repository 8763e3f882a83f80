"""A data set as arrays of integers, which take little memory however long the text is."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from genpool.data.reader import Example
from genpool.text import Batch, WordTable
from genpool.text.tree_source import TreeSource
from genpool.trees import Tree, TreeKind

Ints = NDArray[np.int32]
#: sentences whose syntax trees are made together
TREE_SENTENCES = 4096
#: (sentence, whether it is tokenized already) -> its words
SplitWords = Callable[[str, bool], list[str]]


class WordIds:
    """The distinct words of a text and their ids, in the order of their first occurrence.

    They are independent of any vocabulary, which can only be built when the text has been read.
    """

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def add(self, word: str) -> int:
        """Returns the id of a word; a new word is added."""
        return self.ids.setdefault(word, len(self.ids))

    def counts(self, tokens: Ints) -> Counter[str]:
        """Returns how often each word occurs among the tokens (tokens,)."""
        counts = np.bincount(tokens, minlength=len(self.ids))  # (distinct words,)
        return Counter(
            {word: int(count) for word, count in zip(self.ids, counts, strict=True) if count}
        )


@dataclass
class Split:
    """The examples of one split.

    Attributes:
        tokens: (tokens,), the word ids of all sentences, one sentence after the other.
        starts: (sentences + 1,), the index of the first token of each sentence.
        labels: (examples,), the label ids; -1 where there is none.
        sides: Sentences per example: sentence s of example e is number e * sides + s.
        ids: The id of each example.
        genres: The genre of each example, if any.
        scores: (examples,), the score of each example, NaN where it has none; empty if no example
            has one.
        parses: The trees that the data has for each sentence, by their kind; empty if none were
            asked for.
        trees: (tokens, columns), the syntax tree of every sentence, for an encoder that reads them.
    """

    tokens: Ints
    starts: NDArray[np.int64]
    labels: NDArray[np.int64]
    sides: int
    ids: list[str] = field(default_factory=list)
    genres: list[str | None] = field(default_factory=list)
    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    parses: list[Mapping[str, Tree]] = field(default_factory=list)
    trees: Tree | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(examples, sides): the tokens of each sentence."""
        return np.diff(self.starts).reshape(-1, self.sides)

    def sentence(self, number: int) -> Ints:
        """Returns the word ids (length,) of a sentence."""
        return self.tokens[self.starts[number] : self.starts[number + 1]]

    def take(self, examples: Sequence[int] | NDArray[np.int64]) -> Split:
        """Returns the examples of these numbers as a split, in this order."""
        rows = np.asarray(examples, dtype=np.int64)  # (rows,)
        numbers = (rows[:, None] * self.sides + np.arange(self.sides)).ravel()  # (rows * sides,)
        sentences = [self.sentence(number) for number in numbers.tolist()]
        lengths = [len(sentence) for sentence in sentences]
        return Split(
            np.concatenate([*sentences, np.empty(0, np.int32)]),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            self.labels[rows],
            self.sides,
            [self.ids[row] for row in rows],
            [self.genres[row] for row in rows],
            self.scores[rows] if len(self.scores) else self.scores,
            [self.parses[number] for number in numbers] if self.parses else [],
        )

    def batch(self, examples: Sequence[int] | NDArray[np.int64], table: WordTable) -> Batch:
        """Returns one batch for all sides: all first sentences, then all second ones."""
        numbers = [
            int(example) * self.sides + side for side in range(self.sides) for example in examples
        ]
        trees = None
        if self.trees is not None:
            trees = [self.trees[self.starts[n] : self.starts[n + 1]] for n in numbers]
        return table.batch([self.sentence(number) for number in numbers], trees)

    def with_trees(
        self, source: TreeSource | None, word_ids: WordIds, max_length: int | None
    ) -> Split:
        """Returns the split with a syntax tree for every sentence.

        Args:
            source: Makes the trees of sentences without a parse. None: the encoder reads no trees.
            word_ids: The ids that this split was read with.
            max_length: The length to which sentences were truncated, if they were.
        """
        if source is None:
            return self
        words = list(word_ids.ids)
        trees: list[Tree] = []
        for start in range(0, len(self.starts) - 1, TREE_SENTENCES):
            numbers = range(start, min(start + TREE_SENTENCES, len(self.starts) - 1))
            sentences = [[words[word] for word in self.sentence(number)] for number in numbers]
            known = [self.parses[n].get(source.kind_name) for n in numbers] if self.parses else []
            trees += source.trees(sentences, known, max_length)
        empty = np.empty((0, source.kind.columns), dtype=np.int32)
        return replace(self, parses=[], trees=np.concatenate([*trees, empty]))

    def with_table(
        self,
        table: WordTable,
        word_ids: WordIds,
        sentence_ends: bool,
        tree_kind: TreeKind | None = None,
    ) -> Split:
        """Returns the split with the indices of a word table in place of the word ids.

        Args:
            table: Its indices are those that `batch` needs; new words are added to it.
            word_ids: The ids that this split was read with.
            sentence_ends: Put a begin and an end token around every sentence.
            tree_kind: The kind of the syntax trees, if there are any. Default: None.
        """
        indices = np.array([table.index_of(word) for word in word_ids.ids], dtype=np.int32)
        tokens, starts, trees = indices[self.tokens], self.starts, self.trees
        if sentence_ends:
            if trees is not None and tree_kind is not None:
                sentences = np.split(trees, starts[1:-1])
                trees = np.concatenate([tree_kind.with_ends(tree) for tree in sentences])
            tokens = np.insert(tokens, starts[1:], table.end)
            begins = starts[:-1] + np.arange(len(starts) - 1)  # (sentences,)
            tokens = np.insert(tokens, begins, table.begin)
            starts = starts + 2 * np.arange(len(starts))
        return replace(self, tokens=tokens, starts=starts, trees=trees)


def read_split(
    examples: Iterable[Example],
    word_ids: WordIds,
    split_words: SplitWords,
    label_id: Callable[[str | None], int],
) -> Split:
    """Returns a stream of examples as a split; new words are added to `word_ids`."""
    tokens, starts, labels, scores = array("i"), array("q", [0]), array("q"), array("d")
    ids: list[str] = []
    genres: list[str | None] = []
    parses: list[Mapping[str, Tree]] = []
    sides = 1
    for row, example in enumerate(examples):
        sentences = [example.first]
        if example.second is not None:
            sentences.append(example.second)
        sides = len(sentences)
        for sentence in sentences:
            tokens.extend(map(word_ids.add, split_words(sentence, example.tokenized)))
            starts.append(len(tokens))
        parses.extend(example.trees[: len(sentences)])
        labels.append(label_id(example.label))
        scores.append(math.nan if example.score is None else example.score)
        ids.append(example.id or str(row))
        genres.append(example.genre)
    return Split(
        np.frombuffer(tokens, dtype=np.int32) if tokens else np.empty(0, np.int32),
        np.frombuffer(starts, dtype=np.int64),
        np.frombuffer(labels, dtype=np.int64) if labels else np.empty(0, np.int64),
        sides,
        ids,
        genres,
        np.array([] if all(map(math.isnan, scores)) else scores, dtype=np.float64),
        parses,
    )

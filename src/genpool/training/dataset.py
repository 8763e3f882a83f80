"""A data set as arrays of integers, which take little memory however long the text is; batches."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.data.reader import Example
from genpool.tensors.arrays import Annotation
from genpool.text import Batch, TextPipeline, WordTable
from genpool.training.settings import TrainingSettings

Ints = NDArray[np.int32]
Int64s = NDArray[np.int64]
#: the distinct words of a text and their ids, in the order of their first occurrence; independent
#: of any vocabulary, which can only be built when the text has been read
WordIds = dict[str, int]
#: sentences that are annotated together
ANNOTATED_SENTENCES = 4096


@dataclass
class Split:
    """The examples of one split; sentence s of example e is number e * sides + s."""

    tokens: Ints  # (tokens,), the word ids of all sentences, one sentence after the other
    starts: Int64s  # (sentences + 1,), the index of the first token of each sentence
    sides: int  # sentences per example
    ids: list[str]
    genres: list[str | None]
    names: list[str | None]  # of the labels, as they were read
    scores: NDArray[np.float64]  # (examples,), NaN where an example has none
    # set by the objective: label ids, -1 where there is none; what the loss compares logits with
    labels: Int64s  # (examples,)
    targets: NDArray[Any]  # (examples, ...)
    # the annotations that the data has for each sentence; empty if the encoder reads none
    known: list[Annotation | None] = field(default_factory=list)
    annotations: Annotation | None = None  # (tokens, columns), made by `with_table`

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Int64s:
        """(examples, sides): the tokens of each sentence."""
        return np.diff(self.starts).reshape(-1, self.sides)

    def sentence(self, number: int) -> Ints:
        """Returns the word ids (length,) of a sentence."""
        return self.tokens[self.starts[number] : self.starts[number + 1]]

    def take(self, examples: Sequence[int] | Int64s) -> Split:
        """Returns the examples of these numbers as a split, in this order."""
        rows = np.asarray(examples, dtype=np.int64)  # (rows,)
        numbers = (rows[:, None] * self.sides + np.arange(self.sides)).ravel()  # (rows * sides,)
        sentences = [self.sentence(number) for number in numbers.tolist()]
        return Split(
            np.concatenate([*sentences, np.empty(0, np.int32)]),
            np.cumsum([0, *map(len, sentences)], dtype=np.int64),
            self.sides,
            [self.ids[row] for row in rows],
            [self.genres[row] for row in rows],
            [self.names[row] for row in rows],
            self.scores[rows],
            self.labels[rows],
            self.targets[rows],
            [self.known[number] for number in numbers] if self.known else [],
        )

    def batch(self, examples: Sequence[int] | Int64s, table: WordTable) -> Batch:
        """Returns one batch for all sides: all first sentences, then all second ones."""
        numbers = [
            int(example) * self.sides + side for side in range(self.sides) for example in examples
        ]
        annotations = None
        if self.annotations is not None:
            annotations = [self.annotations[self.starts[n] : self.starts[n + 1]] for n in numbers]
        return table.batch([self.sentence(number) for number in numbers], annotations)

    def with_table(self, table: WordTable, word_ids: WordIds, text: TextPipeline) -> Split:
        """Returns the split with indices of a word table, which gets new words, and annotations."""
        indices = np.array([table.index_of(word) for word in word_ids], dtype=np.int32)
        tokens, starts = indices[self.tokens], self.starts
        if text.sentence_ends:
            tokens = np.insert(tokens, starts[1:], table.end)
            begins = starts[:-1] + np.arange(len(starts) - 1)  # (sentences,)
            tokens = np.insert(tokens, begins, table.begin)
            starts = starts + 2 * np.arange(len(starts))
        annotations = self._annotate(list(word_ids), text)
        return replace(self, tokens=tokens, starts=starts, known=[], annotations=annotations)

    def _annotate(self, words: list[str], text: TextPipeline) -> Annotation | None:
        """Returns the annotations (tokens, columns) of all sentences; words: by their ids."""
        if text.annotator is None:
            return None
        parts = [np.empty((0, text.annotator.columns), dtype=np.int32)]
        for start in range(0, len(self.starts) - 1, ANNOTATED_SENTENCES):
            numbers = range(start, min(start + ANNOTATED_SENTENCES, len(self.starts) - 1))
            sentences = [[words[word] for word in self.sentence(number)] for number in numbers]
            known = [self.known[number] if self.known else None for number in numbers]
            with text.annotator.knowing(sentences, known):
                parts += text.annotations(sentences) or []
        return np.concatenate(parts)


def read_split(
    examples: Iterable[Example], word_ids: WordIds, split_words: Callable[[str, bool], list[str]]
) -> Split:
    """Returns a stream of examples as a split; new words are added to `word_ids`."""
    tokens, starts, scores = array("i"), array("q", [0]), array("d")
    ids: list[str] = []
    genres: list[str | None] = []
    names: list[str | None] = []
    known: list[Annotation | None] = []
    sides = 1
    for row, example in enumerate(examples):
        sentences = [text for text in (example.first, example.second) if text is not None]
        sides = len(sentences)
        for sentence in sentences:
            for word in split_words(sentence, example.tokenized):
                tokens.append(word_ids.setdefault(word, len(word_ids)))
            starts.append(len(tokens))
        known.extend(example.annotations[:sides])
        names.append(example.label)
        scores.append(math.nan if example.score is None else example.score)
        ids.append(example.id or str(row))
        genres.append(example.genre)
    text = np.array(tokens, np.int32), np.array(starts, np.int64)
    labels, targets = np.full(len(ids), -1), np.array(scores)
    return Split(*text, sides, ids, genres, names, targets, labels, targets, known)


def word_counts(word_ids: WordIds, tokens: Ints) -> Counter[str]:
    """Returns how often each word occurs among the tokens (tokens,)."""
    counts = np.bincount(tokens, minlength=len(word_ids)).tolist()  # (distinct words,)
    return Counter({word: count for word, count in zip(word_ids, counts, strict=True) if count})


# --- The order of training: batches of similar length, shuffled by seed and epoch ---------------


def epoch_batches(lengths: Int64s, settings: TrainingSettings, epoch: int) -> list[Int64s]:
    """Returns the batches of an epoch, from 0; lengths are (rows, sides).

    The rows are sorted by length within buffers of `buffer_batches` batches and cut into batches.
    """
    random = np.random.default_rng((settings.seed, epoch))
    shuffles_rows = settings.shuffle == "rows"
    order = random.permutation(len(lengths)) if shuffles_rows else np.arange(len(lengths))
    size, buffer_size = settings.batch_size, settings.buffer_batches * settings.batch_size
    # As in `np.lexsort`, the last key is the first. The longest side decides how long a batch
    # takes, the rest how much padding it has.
    keys = [lengths.sum(axis=1), lengths.max(axis=1)]  # (rows,) each
    if settings.sort_by == "second":
        keys = [lengths[:, -1]]
    batches: list[Int64s] = []
    for start in range(0, len(order), buffer_size):
        buffer = order[start : start + buffer_size]
        ranked = buffer[np.lexsort([key[buffer] for key in keys])]
        buffered = [ranked[at : at + size] for at in range(0, len(ranked), size)]
        if not shuffles_rows:
            buffered = [buffered[number] for number in random.permutation(len(buffered))]
        batches += buffered
    if shuffles_rows:
        batches = [batches[number] for number in random.permutation(len(batches))]
    return batches


def count_epochs(lengths: Int64s, settings: TrainingSettings) -> int:
    """Returns the epochs of a run: as many as `steps` needs, from `min_epochs` to `epochs`.

    `max_tokens` limits them too; lengths are (rows, sides).
    """
    if settings.steps is None:
        return settings.epochs
    wanted = math.ceil(settings.steps / math.ceil(len(lengths) / settings.batch_size))
    if settings.max_tokens is not None:
        wanted = min(wanted, settings.max_tokens // max(int(lengths.sum()), 1))
    return min(max(wanted, settings.min_epochs), settings.epochs)

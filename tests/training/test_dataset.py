"""Data sets as arrays of integers, and the batches of an epoch."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool.data import Example
from genpool.text import Characters, TextPipeline, Vocabulary, WordTable, WordTokenizer
from genpool.text.vocabulary import BEGIN, END
from genpool.training.dataset import (
    Split,
    WordIds,
    count_epochs,
    epoch_batches,
    read_split,
    word_counts,
)
from genpool.training.settings import TrainingSettings

WORDS = ("a", "dog", "Dog", "runs", "sleeps", ".", "naïve")
sentence = st.lists(st.sampled_from(WORDS), max_size=5)


def pipeline(sentence_ends: bool) -> TextPipeline:
    return TextPipeline(WordTokenizer(), Vocabulary.build({}), Characters(""), sentence_ends)


def split_of(examples: list[Example]) -> tuple[Split, WordIds]:
    word_ids = WordIds()
    return read_split(examples, word_ids, lambda text, tokenized: text.split()), word_ids


def table() -> WordTable:
    vocabulary = Vocabulary.build(Counter(WORDS))
    return WordTable(vocabulary, Characters.build(WORDS))


def words_of(split: Split, word_ids: WordIds) -> list[list[str]]:
    names = list(word_ids)
    return [
        [names[number] for number in split.sentence(place)]
        for place in range(len(split.starts) - 1)
    ]


def pairs_of(sentences: list[tuple[list[str], list[str]]]) -> list[Example]:
    return [
        Example("yes", " ".join(first), " ".join(second), id=f"row{at}", genre=f"g{at}")
        for at, (first, second) in enumerate(sentences)
    ]


PAIRS = [
    (["a", "dog"], ["a", "Dog", "runs", "."]),
    (["sleeps"], []),
    (["a", "a"], ["naïve", "dog", "."]),
]


@given(st.lists(sentence, max_size=8))
def test_streaming_into_arrays_keeps_every_word_in_its_place(sentences):
    split, word_ids = split_of([Example("no", " ".join(words)) for words in sentences])
    assert words_of(split, word_ids) == sentences
    assert len(split) == len(sentences)
    assert split.lengths.tolist() == [[len(words)] for words in sentences]
    assert split.names == ["no"] * len(sentences)
    assert split.tokens.dtype == np.int32


def test_ids_genres_and_tokens_are_kept_and_words_are_counted():
    words, word_ids = [Example("yes", "a b", id="x", tokenized=True)], WordIds()
    words.append(Example("no", "a b", genre="news"))
    split = read_split(
        words, word_ids, lambda text, tokenized: text.split() if tokenized else [text]
    )
    assert words_of(split, word_ids) == [["a", "b"], ["a b"]]
    assert (split.ids, split.genres) == (["x", "1"], [None, "news"])
    split, word_ids = split_of([Example("yes", "a dog a"), Example("no", "dog runs")])
    assert word_counts(word_ids, split.tokens) == Counter(a=2, dog=2, runs=1)
    assert word_counts(word_ids, split.take([1]).tokens) == Counter(dog=1, runs=1)


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=6), st.data())
def test_taking_rows_takes_all_that_belongs_to_them(sentences, data):
    split, word_ids = split_of(pairs_of(sentences))
    rows = data.draw(st.lists(st.integers(0, len(sentences) - 1), max_size=8))
    taken = split.take(rows)
    assert words_of(taken, word_ids) == [side for row in rows for side in sentences[row]]
    assert taken.ids == [f"row{row}" for row in rows]
    assert taken.genres == [f"g{row}" for row in rows]
    assert taken.names == ["yes"] * len(rows)
    assert taken.sides == 2


@given(st.lists(sentence, max_size=6))
def test_sentence_ends_are_around_every_sentence_and_nowhere_else(sentences):
    split, word_ids = split_of([Example("yes", " ".join(words)) for words in sentences])
    words = table()
    marked = split.with_table(words, word_ids, pipeline(sentence_ends=True))
    for place, sentence in enumerate(sentences):
        expected = [words.begin, *(words.index_of(word) for word in sentence), words.end]
        assert marked.sentence(place).tolist() == expected
    assert marked.starts[-1] == len(marked.tokens) == sum(len(words) + 2 for words in sentences)


@pytest.mark.parametrize("sentence_ends", [False, True])
def test_a_batch_of_pairs_holds_all_first_sides_and_then_all_second_ones(sentence_ends):
    split, word_ids = split_of(pairs_of(PAIRS))
    words = table()
    batch = split.with_table(words, word_ids, pipeline(sentence_ends)).batch([2, 0], words)
    sides = [PAIRS[2][0], PAIRS[0][0], PAIRS[2][1], PAIRS[0][1]]
    ids = [[words.vocabulary.id(word) for word in side] for side in sides]
    if sentence_ends:
        ids = [[BEGIN, *side, END] for side in ids]
    found = [row[mask].tolist() for row, mask in zip(batch.ids, batch.mask, strict=True)]
    assert found == ids
    assert batch.lengths.tolist() == [len(side) for side in ids]


# --- Batches --------------------------------------------------------------------------------------
BUFFER_BATCHES = TrainingSettings().buffer_batches


def lengths_of(count: int, sides: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 60, (count, sides))


@given(
    count=st.integers(1, 700),
    sides=st.integers(1, 2),
    batch_size=st.integers(1, 40),
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 5),
    shuffle=st.sampled_from(["rows", "batches"]),
)
def test_every_example_is_in_exactly_one_batch_of_an_epoch(
    count, sides, batch_size, seed, epoch, shuffle
):
    settings = TrainingSettings(batch_size=batch_size, seed=seed, shuffle=shuffle)
    batches = epoch_batches(lengths_of(count, sides), settings, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    assert max(map(len, batches)) <= batch_size
    assert len(batches) == -(-count // batch_size)


def test_seed_and_epoch_decide_the_order():
    def listed(seed: int, epoch: int) -> list[list[int]]:
        settings = TrainingSettings(batch_size=8, seed=seed)
        return [batch.tolist() for batch in epoch_batches(lengths_of(300), settings, epoch)]

    assert listed(3, 0) == listed(3, 0)
    assert listed(3, 0) != listed(4, 0)
    # Not only the order of the batches changes: other examples meet.
    assert set(map(frozenset, listed(3, 0))) != set(map(frozenset, listed(3, 1)))
    # Short and long batches come in no order of length.
    longest = [int(lengths_of(300)[batch].max()) for batch in listed(3, 0)]
    rises = sum(after > before for before, after in pairwise(longest))
    assert 0.3 < rises / len(longest) < 0.7


def padding(batches: list[np.ndarray], longest: np.ndarray) -> int:
    return sum(int(len(batch) * longest[batch].max() - longest[batch].sum()) for batch in batches)


def test_sentences_of_similar_length_come_together():
    batch_size = 16
    lengths = lengths_of(BUFFER_BATCHES * batch_size, sides=1)
    batches = epoch_batches(lengths, TrainingSettings(batch_size=batch_size), epoch=0)
    as_they_come = np.split(np.random.default_rng(0).permutation(len(lengths)), BUFFER_BATCHES)
    longest = lengths.max(axis=1)
    assert padding(batches, longest) < padding(as_they_come, longest) / 20
    # Within a buffer the order is by length, so each batch begins where another ends.
    spans = sorted((int(longest[batch].min()), int(longest[batch].max())) for batch in batches)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


@pytest.mark.parametrize(
    ("sort_by", "batches"), [("longest", [{50}, {10, 11}]), ("second", [{1, 2}, {10, 50}])]
)
def test_the_longer_side_of_a_pair_decides_its_place_or_the_second(sort_by, batches):
    lengths = np.array([[1, 50], [50, 1], [10, 10], [11, 2]] * 4)
    keys = lengths.max(axis=1) if sort_by == "longest" else lengths[:, 1]
    found = epoch_batches(lengths, TrainingSettings(batch_size=8, sort_by=sort_by), epoch=0)
    assert {frozenset(keys[batch].tolist()) for batch in found} == set(map(frozenset, batches))


# --- The rule of the released program ------------------------------------------------------------


@pytest.mark.parametrize("sort_by", ["longest", "second"])
def test_shuffling_batches_alone_keeps_the_buffers_of_the_file(sort_by):
    lengths = lengths_of(130)
    rule: Any = {"sort_by": sort_by, "shuffle": "batches"}
    settings = TrainingSettings(batch_size=4, buffer_batches=5, seed=3, **rule)
    batches = [batch.tolist() for batch in epoch_batches(lengths, settings, epoch=2)]
    key = {
        "longest": lambda row: (max(lengths[row]), sum(lengths[row])),
        "second": lambda row: lengths[row][1],
    }[sort_by]
    expected = []  # buffer by buffer, the batches of each in the order of length
    for start in range(0, 130, 20):
        ranked = sorted(range(start, min(start + 20, 130)), key=key)
        expected.append([ranked[at : at + 4] for at in range(0, len(ranked), 4)])
    order = []
    for buffer in expected:
        found, batches = batches[: len(buffer)], batches[len(buffer) :]
        assert sorted(found) == sorted(buffer)
        order.append([buffer.index(batch) for batch in found])
    assert not batches
    assert any(places != sorted(places) for places in order)
    assert order[0] != order[1]  # each buffer has an order of its own


@pytest.mark.parametrize(
    ("rows", "tokens", "batch_size", "steps", "epochs"),
    [
        (100, 1, 25, None, 40),  # 4 steps an epoch
        (100, 1, 25, 20, 5),
        (100, 1, 25, 21, 6),
        (7, 1, 32, 600, 40),  # no more than `epochs`
        (33, 1, 8, 100, 20),  # 5 steps an epoch, the last with a single row
        (1000, 1, 8, 100, 3),  # no fewer than `min_epochs`
        # Of 10,000 tokens; 20 epochs would give the 100 steps.
        (10, 10, 2, 100, 20),
        (10, 50, 2, 100, 20),
        (10, 100, 2, 100, 10),
        (10, 999, 2, 100, 3),  # they allow for one epoch
    ],
)
def test_fewer_rows_get_more_epochs_and_long_texts_fewer(rows, tokens, batch_size, steps, epochs):
    limit = None if tokens == 1 else 10_000
    settings = TrainingSettings(
        epochs=40, batch_size=batch_size, steps=steps, min_epochs=3, max_tokens=limit
    )
    assert count_epochs(np.full((rows, 1), tokens), settings) == epochs

"""Examples as arrays: the words come back, whatever is done with the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool.data import Example
from genpool.text import Characters, TextPipeline, Vocabulary, WordTable, WordTokenizer
from genpool.text.vocabulary import BEGIN, END
from genpool.training.dataset import Split, WordIds, read_split

WORDS = ("a", "dog", "Dog", "runs", "sleeps", ".", "naïve")
LABELS = {"yes": 0, "no": 1, None: -1}

sentence = st.lists(st.sampled_from(WORDS), max_size=5)


def pipeline(sentence_ends: bool) -> TextPipeline:
    return TextPipeline(WordTokenizer(), Vocabulary.build({}), Characters(""), sentence_ends)


def split_of(
    examples: list[Example], number: Callable[[str | None], int] = LABELS.__getitem__
) -> tuple[Split, WordIds]:
    word_ids = WordIds()
    return read_split(examples, word_ids, lambda text, tokenized: text.split(), number), word_ids


def table() -> WordTable:
    vocabulary = Vocabulary.build(Counter(WORDS))
    return WordTable(vocabulary, Characters.build(WORDS))


def words_of(split: Split, word_ids: WordIds) -> list[list[str]]:
    names = list(word_ids.ids)
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
def test_streaming_into_arrays_keeps_every_word_in_its_place(sentences: list[list[str]]) -> None:
    split, word_ids = split_of([Example("no", " ".join(words)) for words in sentences])
    assert words_of(split, word_ids) == sentences
    assert len(split) == len(sentences)
    assert split.lengths.tolist() == [[len(words)] for words in sentences]
    assert split.labels.tolist() == [1] * len(sentences)
    assert split.tokens.dtype == np.int32


def test_a_stream_is_read_once_row_by_row() -> None:
    at_work: list[int] = []

    def stream():
        for number in range(3):
            at_work.append(number)
            yield Example(None, f"a dog {number}")

    numbers: list[int] = []

    def label(given: str | None) -> int:
        numbers.append(len(at_work))
        return -1

    split, _ = split_of(stream(), label)
    assert numbers == [1, 2, 3]
    assert split.labels.tolist() == [-1, -1, -1]


def test_ids_and_genres_are_kept_and_a_row_without_id_gets_its_number() -> None:
    split, _ = split_of([Example("yes", "a", id="x"), Example("no", "dog", genre="news")])
    assert split.ids == ["x", "1"]
    assert split.genres == [None, "news"]


def test_whether_text_is_tokenised_decides_how_it_is_split() -> None:
    word_ids = WordIds()
    examples = [Example("yes", "a b", tokenized=True), Example("yes", "a b")]

    def words(text: str, tokenized: bool) -> list[str]:
        return text.split() if tokenized else [text]

    split = read_split(examples, word_ids, words, LABELS.__getitem__)
    assert words_of(split, word_ids) == [["a", "b"], ["a b"]]


def test_words_are_counted_where_they_occur() -> None:
    split, word_ids = split_of([Example("yes", "a dog a"), Example("no", "dog runs")])
    assert word_ids.counts(split.tokens) == Counter(a=2, dog=2, runs=1)
    assert word_ids.counts(split.take([1]).tokens) == Counter(dog=1, runs=1)


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=6), st.data())
def test_taking_rows_takes_all_that_belongs_to_them(
    sentences: list[tuple[list[str], list[str]]], data: st.DataObject
) -> None:
    split, word_ids = split_of(pairs_of(sentences))
    rows = data.draw(st.lists(st.integers(0, len(sentences) - 1), max_size=8))
    taken = split.take(rows)
    assert words_of(taken, word_ids) == [side for row in rows for side in sentences[row]]
    assert taken.ids == [f"row{row}" for row in rows]
    assert taken.genres == [f"g{row}" for row in rows]
    assert taken.labels.tolist() == [0] * len(rows)
    assert taken.sides == 2


@given(st.lists(sentence, max_size=6))
def test_sentence_ends_are_around_every_sentence_and_nowhere_else(
    sentences: list[list[str]],
) -> None:
    split, word_ids = split_of([Example("yes", " ".join(words)) for words in sentences])
    words = table()
    marked = split.with_table(words, word_ids, pipeline(sentence_ends=True))
    for place, sentence in enumerate(sentences):
        expected = [words.begin, *(words.index_of(word) for word in sentence), words.end]
        assert marked.sentence(place).tolist() == expected
    assert marked.starts[-1] == len(marked.tokens) == sum(len(words) + 2 for words in sentences)


def test_without_sentence_ends_only_the_numbers_change() -> None:
    split, word_ids = split_of(pairs_of(PAIRS))
    words = table()
    plain = split.with_table(words, word_ids, pipeline(sentence_ends=False))
    assert plain.starts.tolist() == split.starts.tolist()
    assert [plain.sentence(place).tolist() for place in range(6)] == [
        [words.index_of(word) for word in side] for pair in PAIRS for side in pair
    ]


@pytest.mark.parametrize("sentence_ends", [False, True])
def test_a_batch_of_pairs_holds_all_first_sides_and_then_all_second_ones(
    sentence_ends: bool,
) -> None:
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

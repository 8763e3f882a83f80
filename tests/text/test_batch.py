"""Sentences as tensors: what goes in can be read back, token by token."""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from genpool.text import Batch, Characters, Vocabulary, WordTable
from genpool.text.vocabulary import BEGIN, END, PAD, SPECIAL_WORDS, UNKNOWN

VOCABULARY = Vocabulary.build({"a": 3, "man": 2, "dog": 2, '"': 1, "'s": 1})
CHARACTERS = Characters("abcdgmno'\"")

known = st.sampled_from(["a", "man", "dog", "Dog", "MAN", "``", "''", '"', "'s", "\u2019s"])
unknown = st.text(st.characters(exclude_categories=["Z", "Cc"]), min_size=1, max_size=8)
words = st.one_of(known, unknown, st.sampled_from(SPECIAL_WORDS))
sentences = st.lists(st.lists(words, max_size=7), max_size=6)
properties = settings(max_examples=100, deadline=None, database=None)

Sentences = list[list[str]]


def table() -> WordTable:
    return WordTable(VOCABULARY, CHARACTERS)


def batched(texts: Sentences, sentence_ends: bool = False) -> Batch:
    words = table()
    return words.batch([words.row(sentence, sentence_ends) for sentence in texts])


def characters_of(batch: Batch) -> list[list[int]]:
    """The character ids of each distinct word."""
    return [ids.tolist() for ids in batch.character_ids.split(batch.character_counts.tolist())]


@properties
@given(sentences, st.booleans())
@example([[], ["a"], []], False)
@example([[]], False)
@example([[], []], False)
@example([], True)
@example([], False)
def test_lengths_and_mask_are_those_of_the_sentences(texts: Sentences, ends: bool) -> None:
    batch = batched(texts, ends)
    lengths = [len(sentence) + 2 * ends for sentence in texts]
    longest = max(lengths, default=0)
    assert batch.lengths.tolist() == lengths
    assert batch.mask.dtype is torch.bool and batch.index.dtype is torch.int64
    assert (batch.index[~batch.mask] == 0).all()
    assert batch.mask.shape == batch.index.shape == batch.ids.shape == (len(texts), longest)
    assert batch.mask.tolist() == [[t < length for t in range(longest)] for length in lengths]


@properties
@given(sentences, st.booleans())
def test_ids_and_characters_are_those_of_the_words_in_their_order(
    texts: Sentences, ends: bool
) -> None:
    batch = batched(texts, ends)
    characters = characters_of(batch)
    for row, sentence in enumerate(texts):
        ids = [VOCABULARY.id(word) for word in sentence]
        spelled = [CHARACTERS.ids_of(word) for word in sentence]
        if ends:
            ids, spelled = [BEGIN, *ids, END], [[BEGIN], *spelled, [END]]
        assert batch.ids[row].tolist() == ids + [PAD] * (batch.mask.shape[1] - len(ids))
        words = batch.index[row][batch.mask[row]].tolist()
        assert [characters[word] for word in words] == spelled


@properties
@given(sentences, st.booleans())
def test_every_distinct_word_is_listed_once(texts: Sentences, ends: bool) -> None:
    batch = batched(texts, ends)
    distinct = {word for sentence in texts for word in sentence}
    expected = len(distinct) + (2 if ends and texts else 0)
    assert len(batch.word_ids) == len(batch.character_counts) == expected
    assert len(batch.character_ids) == int(batch.character_counts.sum())
    assert sorted(batch.index[batch.mask].unique().tolist()) == list(range(expected))


@properties
@given(sentences, sentences)
def test_a_table_that_has_seen_more_gives_the_same_batch(before: Sentences, texts: Sentences):
    shared = table()
    for sentence in before:
        shared.row(sentence, sentence_ends=True)
    batch = shared.batch([shared.row(sentence, sentence_ends=False) for sentence in texts])
    alone = batched(texts)
    assert torch.equal(batch.ids, alone.ids) and torch.equal(batch.mask, alone.mask)
    one, other = characters_of(batch), characters_of(alone)
    for row, mask in enumerate(batch.mask):
        here, there = batch.index[row][mask].tolist(), alone.index[row][mask].tolist()
        assert [one[word] for word in here] == [other[word] for word in there]
    assert len(batch.word_ids) == len(alone.word_ids)


def test_a_hand_worked_batch() -> None:
    batch = batched([["a", "dog", "a"], [], ["xo", "Dog"]])
    assert batch.ids.tolist() == [
        [VOCABULARY.ids["a"], VOCABULARY.ids["dog"], VOCABULARY.ids["a"]],
        [PAD, PAD, PAD],
        [UNKNOWN, VOCABULARY.ids["dog"], PAD],
    ]
    assert batch.mask.tolist() == [[True] * 3, [False] * 3, [True, True, False]]
    assert batch.character_counts.tolist() == [1, 3, 2, 3]
    a, d, o, g = CHARACTERS.ids_of("adog")
    assert batch.character_ids.tolist() == [a, d, o, g, UNKNOWN, o, UNKNOWN, o, g]


def test_sentence_ends_differ_from_words_that_look_like_them() -> None:
    batch = batched([["<s>", "</s>"]], sentence_ends=True)
    assert batch.ids.tolist() == [[BEGIN, UNKNOWN, UNKNOWN, END]]
    assert len(set(batch.index[0].tolist())) == 4


def test_a_word_keeps_its_index_in_a_table() -> None:
    words = table()
    first = words.index_of("dog")
    words.index_of("man")
    assert words.index_of("dog") == first and len(words) == 2 + 2  # with the begin and end tokens


def test_to_moves_every_tensor() -> None:
    moved = replace(batched([["a", "zebra"]]), annotations=torch.zeros(1, 2, 1)).to("meta")
    assert all(getattr(moved, field.name).is_meta for field in fields(Batch))
    assert batched([["a"]]).to("meta").annotations is None

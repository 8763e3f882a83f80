"""From a sentence to a batch: what goes in can be read back, token by token."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from genpool.errors import InputError
from genpool.text import (
    Batch,
    Characters,
    TextPipeline,
    Token,
    TruncationReport,
    Vocabulary,
    WordTable,
    WordTokenizer,
)
from genpool.text.pipeline import CHARACTERS_PER_TOKEN, GROUP_CHARACTERS, text_groups
from genpool.text.tokenizer import read_tokenizer
from genpool.text.vocabulary import BEGIN, END, MAX_WORD_CHARACTERS, PAD, SPECIAL_WORDS, UNKNOWN

VOCABULARY = Vocabulary.build({"A": 1, "man": 1, "sleeps": 1, ".": 1})


def pipeline(rules: str = "penn", **options) -> TextPipeline:
    return TextPipeline(
        WordTokenizer(rules), VOCABULARY, Characters.build(VOCABULARY.words[4:]), **options
    )


def test_a_long_sentence_is_truncated_to_its_first_tokens_and_counted() -> None:
    assert len((text := pipeline("whitespace")).words("man " * 20_000)) == 20_000
    assert not text.cut
    text = pipeline(max_length=2)
    assert text.tokens("A man sleeps.") == [Token("A", 0, 1), Token("man", 2, 5)]
    assert text.words("A man") == ["A", "man"]
    assert str(text.cut) == "1 sentence was truncated by 2 tokens in total"
    assert text.words("A man sleeps") == ["A", "man"]
    assert str(text.cut) == "2 sentences were truncated by 3 tokens in total"
    assert text.cut == TruncationReport(2, 3)


def test_sentence_ends_are_not_counted_in_the_maximum_length() -> None:
    text = pipeline(max_length=2, sentence_ends=True)
    batch = text.batch([text.words("A man sleeps.")])
    assert batch.ids.tolist() == [[BEGIN, VOCABULARY.ids["A"], VOCABULARY.ids["man"], END]]
    with pytest.raises(InputError, match=r"max_length is 0; expected 1 or more, or None"):
        pipeline(max_length=0)


@pytest.mark.parametrize("fallback", [True, False])
def test_a_pipeline_comes_back_from_its_tokenizer(fallback: bool) -> None:
    text = pipeline(sentence_ends=True, max_length=3)
    characters = text.characters.characters
    stored = read_tokenizer(pipeline().to_tokenizers().to_str())
    loaded = TextPipeline.from_stored(stored, characters, True, 3, fallback)
    assert loaded.vocabulary.words == VOCABULARY.words
    assert loaded.characters.characters == characters
    assert loaded.vocabulary.lower_case_fallback is fallback
    assert (loaded.sentence_ends, loaded.max_length, loaded.tokenizer.rules) == (True, 3, "penn")
    sentence = "A man sleeps. Man's"
    assert loaded.tokens(sentence) == text.tokens(sentence)
    expected = VOCABULARY.ids["man"] if fallback else UNKNOWN
    assert loaded.batch([["Man"]]).ids.tolist() == [[BEGIN, expected, END]]


# --- how much of a text is read -------------------------------------------------------------------

LONG = "x" * MAX_WORD_CHARACTERS


def short_pipeline(
    max_length: int | None = None, words: tuple[str, ...] = ("a", "b")
) -> TextPipeline:
    vocabulary = Vocabulary.build(dict.fromkeys(words, 1))
    return TextPipeline(WordTokenizer(), vocabulary, Characters("abxy"), max_length=max_length)


def test_a_word_counts_by_its_first_characters_and_the_longer_ones_are_counted() -> None:
    text = short_pipeline()
    words = text.words_batch([f"a {LONG}y b", f"{LONG}", f"{LONG}x {LONG}b"])
    assert words == [["a", f"{LONG}y", "b"], [LONG], [f"{LONG}x", f"{LONG}b"]]
    assert text.cut == TruncationReport(words=3)
    assert str(text.cut) == "3 words were truncated to 256 characters"
    batch = text.batch(words)
    # a, b, and one entry each for the word of exactly 256 characters and for the longer ones
    assert sorted(batch.character_counts.tolist()) == [1, 1, 256, 256]
    batch = short_pipeline(words=(f"{LONG}known",)).batch([[f"{LONG}known", f"{LONG}other"]])
    assert batch.ids.tolist() == [[4, 1]]  # a long word of the vocabulary keeps its id


def test_a_word_of_a_megabyte_takes_no_memory_to_speak_of() -> None:
    text, word = short_pipeline(), "x" * 1_000_000
    table = text.table()
    tracemalloc.start()
    for ending in range(5):
        table.index_of(f"{word}{ending}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(table) == 3  # begin, end, and one word
    assert peak < 10 * len(word)  # the words themselves, and copies of one while it is looked up


def test_a_line_is_cut_before_it_is_split_and_the_rest_is_counted() -> None:
    text = short_pipeline(max_length=3)
    limit = 3 * CHARACTERS_PER_TOKEN
    line = "a b " * 1000
    assert text.words(line) == text.words_batch([line])[0] == ["a", "b", "a"]
    assert [token.start for token in text.tokens(line)] == [0, 2, 4]
    removed = (limit // 2 - 3, len(line) - limit)
    assert text.cut == TruncationReport(3, 3 * removed[0], 3 * removed[1])
    expected = f"truncated by {3 * removed[0]:,} tokens and {3 * removed[1]:,} characters in total"
    assert expected in str(text.cut)
    text = short_pipeline(max_length=2)  # spaces without end
    assert text.words("a" + " " * 1000 + "b") == ["a"]
    assert text.cut == TruncationReport(1, 0, 1002 - 2 * CHARACTERS_PER_TOKEN)


@pytest.mark.parametrize("tokenized", [True, False])
def test_the_first_tokens_of_a_long_line_are_those_of_the_whole_line(tokenized: bool) -> None:
    line = "It 's No. 5 at http://a.b/c?d, isn't it? " * 50
    whole = short_pipeline().words(line, tokenized)
    assert short_pipeline(max_length=40).words(line, tokenized) == whole[:40]


def test_groups_have_a_bounded_number_of_texts_and_characters() -> None:
    assert list(text_groups(["aa", "b", "c", "dddd", "e"], 3, 4)) == [
        ["aa", "b", "c"],
        ["dddd"],
        ["e"],
    ]
    assert list(text_groups([], 3)) == []
    assert list(text_groups(["", ""])) == [["", ""]]
    texts = ["a b " * 1000, "b", "a " * GROUP_CHARACTERS, "", "b a"]
    text = short_pipeline(max_length=4)
    assert text.words_batch(texts) == [text.words(one) for one in texts]


def test_reports_can_be_added_and_subtracted() -> None:
    total = TruncationReport(1, 2, 3, 4)
    alias = total
    total += TruncationReport(10, 20, 30, 40)
    assert alias == TruncationReport(11, 22, 33, 44)
    assert alias - TruncationReport(1, 2, 3, 4) == TruncationReport(10, 20, 30, 40)
    assert not TruncationReport() and TruncationReport(words=1) and TruncationReport(1)


# --- words as tensors -----------------------------------------------------------------------------

WORDS = Vocabulary.build({"a": 3, "man": 2, "dog": 2, '"': 1, "'s": 1})
CHARACTERS = Characters("abcdgmno'\"")

known = st.sampled_from(["a", "man", "dog", "Dog", "MAN", "``", "''", '"', "'s", "\u2019s"])
unknown = st.text(st.characters(exclude_categories=["Z", "Cc"]), min_size=1, max_size=8)
words = st.one_of(known, unknown, st.sampled_from(SPECIAL_WORDS))
sentences = st.lists(st.lists(words, max_size=7), max_size=6)
properties = settings(max_examples=100, deadline=None, database=None)

Sentences = list[list[str]]


def batched(texts: Sentences, sentence_ends: bool = False) -> Batch:
    words = WordTable(WORDS, CHARACTERS)
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
def test_a_batch_is_its_sentences_with_every_word_once(texts: Sentences, ends: bool) -> None:
    batch = batched(texts, ends)
    lengths = [len(sentence) + 2 * ends for sentence in texts]
    longest = max(lengths, default=0)
    assert batch.lengths.tolist() == lengths
    assert batch.mask.dtype is torch.bool and batch.index.dtype is torch.int64
    assert (batch.index[~batch.mask] == 0).all()
    assert batch.mask.shape == batch.index.shape == batch.ids.shape == (len(texts), longest)
    assert batch.mask.tolist() == [[t < length for t in range(longest)] for length in lengths]
    characters = characters_of(batch)
    for row, sentence in enumerate(texts):
        ids = [WORDS.id(word) for word in sentence]
        spelled = [CHARACTERS.ids_of(word) for word in sentence]
        if ends:
            ids, spelled = [BEGIN, *ids, END], [[BEGIN], *spelled, [END]]
        assert batch.ids[row].tolist() == ids + [PAD] * (batch.mask.shape[1] - len(ids))
        words = batch.index[row][batch.mask[row]].tolist()
        assert [characters[word] for word in words] == spelled
    distinct = {word for sentence in texts for word in sentence}
    expected = len(distinct) + (2 if ends and texts else 0)
    assert len(batch.word_ids) == len(batch.character_counts) == expected
    assert len(batch.character_ids) == int(batch.character_counts.sum())
    assert sorted(batch.index[batch.mask].unique().tolist()) == list(range(expected))


@properties
@given(sentences, sentences)
def test_a_table_that_has_seen_more_gives_the_same_batch(before: Sentences, texts: Sentences):
    shared = WordTable(WORDS, CHARACTERS)
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
        [WORDS.ids["a"], WORDS.ids["dog"], WORDS.ids["a"]],
        [PAD, PAD, PAD],
        [UNKNOWN, WORDS.ids["dog"], PAD],
    ]
    assert batch.mask.tolist() == [[True] * 3, [False] * 3, [True, True, False]]
    assert batch.character_counts.tolist() == [1, 3, 2, 3]
    a, d, o, g = CHARACTERS.ids_of("adog")
    assert batch.character_ids.tolist() == [a, d, o, g, UNKNOWN, o, UNKNOWN, o, g]


def test_sentence_ends_differ_from_words_that_look_like_them() -> None:
    batch = batched([["<s>", "</s>"]], sentence_ends=True)
    assert batch.ids.tolist() == [[BEGIN, UNKNOWN, UNKNOWN, END]]
    assert len(set(batch.index[0].tolist())) == 4


def test_to_moves_every_tensor() -> None:
    moved = replace(batched([["a", "zebra"]]), annotations=torch.zeros(1, 2, 1)).to("meta")
    assert all(getattr(moved, field.name).is_meta for field in fields(Batch))
    assert batched([["a"]]).to("meta").annotations is None

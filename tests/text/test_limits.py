"""How much of a text is read: words and lines of any length in bounded memory, and counted."""

from __future__ import annotations

import tracemalloc

import pytest

from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.pipeline import (
    CHARACTERS_PER_TOKEN,
    GROUP_CHARACTERS,
    TruncationReport,
    text_groups,
)
from genpool.text.vocabulary import MAX_WORD_CHARACTERS

LONG = "x" * MAX_WORD_CHARACTERS


def pipeline(max_length: int | None = None, words: tuple[str, ...] = ("a", "b")) -> TextPipeline:
    vocabulary = Vocabulary.build(dict.fromkeys(words, 1))
    return TextPipeline(WordTokenizer(), vocabulary, Characters("abxy"), max_length=max_length)


def test_a_word_counts_by_its_first_characters_and_the_longer_ones_are_counted() -> None:
    text = pipeline()
    words = text.words_batch([f"a {LONG}y b", f"{LONG}", f"{LONG}x {LONG}b"])
    assert words == [["a", f"{LONG}y", "b"], [LONG], [f"{LONG}x", f"{LONG}b"]]
    assert text.cut == TruncationReport(words=3)
    assert str(text.cut) == "3 words were truncated to 256 characters"
    batch = text.batch(words)
    # a, b, and one entry each for the word of exactly 256 characters and for the longer ones
    assert sorted(batch.character_counts.tolist()) == [1, 1, 256, 256]


def test_a_long_word_of_the_vocabulary_keeps_its_id() -> None:
    text = pipeline(words=(f"{LONG}known",))
    batch = text.batch([[f"{LONG}known", f"{LONG}other"]])
    assert batch.ids.tolist() == [[4, 1]]


def test_a_word_of_a_megabyte_takes_no_memory_to_speak_of() -> None:
    text, word = pipeline(), "x" * 1_000_000
    table = text.table()
    tracemalloc.start()
    for ending in range(5):
        table.index_of(f"{word}{ending}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(table) == 3  # begin, end, and one word
    assert peak < 10 * len(word)  # the words themselves, and copies of one while it is looked up


def test_a_line_is_cut_before_it_is_split_and_the_rest_is_counted() -> None:
    text = pipeline(max_length=3)
    limit = 3 * CHARACTERS_PER_TOKEN
    line = "a b " * 1000
    assert text.words(line) == text.words_batch([line])[0] == ["a", "b", "a"]
    assert [token.start for token in text.tokens(line)] == [0, 2, 4]
    removed = (limit // 2 - 3, len(line) - limit)
    assert text.cut == TruncationReport(3, 3 * removed[0], 3 * removed[1])
    expected = f"truncated by {3 * removed[0]:,} tokens and {3 * removed[1]:,} characters in total"
    assert expected in str(text.cut)


@pytest.mark.parametrize("tokenized", [True, False])
def test_the_first_tokens_of_a_long_line_are_those_of_the_whole_line(tokenized: bool) -> None:
    line = "It 's No. 5 at http://a.b/c?d, isn't it? " * 50
    whole = pipeline().words(line, tokenized)
    assert pipeline(max_length=40).words(line, tokenized) == whole[:40]


def test_spaces_without_end_are_cut_too() -> None:
    text = pipeline(max_length=2)
    assert text.words("a" + " " * 1000 + "b") == ["a"]
    assert text.cut == TruncationReport(1, 0, 1002 - 2 * CHARACTERS_PER_TOKEN)
    assert text.is_truncated("a" + " " * 1000 + "b") and text.is_truncated("a b a")
    assert not text.is_truncated("a b")


def test_groups_have_a_bounded_number_of_texts_and_characters() -> None:
    assert list(text_groups(["aa", "b", "c", "dddd", "e"], 3, 4)) == [
        ["aa", "b", "c"],
        ["dddd"],
        ["e"],
    ]
    assert list(text_groups([], 3)) == []
    assert list(text_groups(["", ""])) == [["", ""]]


def test_many_characters_are_split_in_groups_into_the_same_words() -> None:
    texts = ["a b " * 1000, "b", "a " * GROUP_CHARACTERS, "", "b a"]
    text = pipeline(max_length=4)
    assert text.words_batch(texts) == [text.words(one) for one in texts]


def test_reports_can_be_added_and_subtracted() -> None:
    total = TruncationReport(1, 2, 3, 4)
    alias = total
    total += TruncationReport(10, 20, 30, 40)
    assert alias == TruncationReport(11, 22, 33, 44)
    assert alias - TruncationReport(1, 2, 3, 4) == TruncationReport(10, 20, 30, 40)
    assert not TruncationReport() and TruncationReport(words=1) and TruncationReport(1)

"""From a sentence to a batch."""

from __future__ import annotations

import tracemalloc

import pytest

from genpool.errors import InputError
from genpool.text import Characters, TextPipeline, Token, Vocabulary, WordTokenizer
from genpool.text.pipeline import (
    CHARACTERS_PER_TOKEN,
    GROUP_CHARACTERS,
    TruncationReport,
    text_groups,
)
from genpool.text.stored_tokenizer import read_tokenizer
from genpool.text.vocabulary import BEGIN, END, MAX_WORD_CHARACTERS, PAD, UNKNOWN

VOCABULARY = Vocabulary.build({"A": 1, "man": 1, "sleeps": 1, ".": 1})


def pipeline(rules: str = "penn", **options) -> TextPipeline:
    return TextPipeline(
        WordTokenizer(rules), VOCABULARY, Characters.build(VOCABULARY.words[4:]), **options
    )


def test_a_batch_has_the_ids_of_the_vocabulary() -> None:
    text = pipeline()
    batch = text.batch([text.words("A man sleeps."), text.words("A zebra")])
    ids = VOCABULARY.ids
    assert batch.ids.tolist() == [
        [ids["A"], ids["man"], ids["sleeps"], ids["."]],
        [ids["A"], UNKNOWN, PAD, PAD],
    ]


def test_sentence_ends_surround_every_sentence_even_an_empty_one() -> None:
    batch = pipeline(sentence_ends=True).batch([["man"], []])
    assert batch.ids.tolist() == [[BEGIN, VOCABULARY.ids["man"], END], [BEGIN, END, PAD]]


def test_nothing_is_truncated_unless_asked_for() -> None:
    text = pipeline("whitespace")
    assert len(text.words("man " * 20_000)) == 20_000
    assert (text.cut.sentences, text.cut.tokens) == (0, 0)


def test_a_long_sentence_is_truncated_to_its_first_tokens_and_counted() -> None:
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


def test_a_maximum_length_below_one_is_refused() -> None:
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


def test_a_long_word_of_the_vocabulary_keeps_its_id() -> None:
    text = short_pipeline(words=(f"{LONG}known",))
    batch = text.batch([[f"{LONG}known", f"{LONG}other"]])
    assert batch.ids.tolist() == [[4, 1]]


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


@pytest.mark.parametrize("tokenized", [True, False])
def test_the_first_tokens_of_a_long_line_are_those_of_the_whole_line(tokenized: bool) -> None:
    line = "It 's No. 5 at http://a.b/c?d, isn't it? " * 50
    whole = short_pipeline().words(line, tokenized)
    assert short_pipeline(max_length=40).words(line, tokenized) == whole[:40]


def test_spaces_without_end_are_cut_too() -> None:
    text = short_pipeline(max_length=2)
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
    text = short_pipeline(max_length=4)
    assert text.words_batch(texts) == [text.words(one) for one in texts]


def test_reports_can_be_added_and_subtracted() -> None:
    total = TruncationReport(1, 2, 3, 4)
    alias = total
    total += TruncationReport(10, 20, 30, 40)
    assert alias == TruncationReport(11, 22, 33, 44)
    assert alias - TruncationReport(1, 2, 3, 4) == TruncationReport(10, 20, 30, 40)
    assert not TruncationReport() and TruncationReport(words=1) and TruncationReport(1)

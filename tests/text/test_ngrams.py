"""The n-grams of a word, and which words of a batch have them."""

from __future__ import annotations

import zlib

import pytest

from genpool.errors import InputError
from genpool.text import TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import MAX_NGRAM_CHARACTERS, SPECIAL_WORDS, CharacterNgrams


def test_the_ngrams_of_a_word_by_hand() -> None:
    ngrams = CharacterNgrams(1000, sizes=(2, 3))
    assert ngrams.parts("Abc") == ["<abc>", "<a", "ab", "bc", "c>", "<ab", "abc", "bc>"]
    assert ngrams.ids_of("abc")[1] == 4 + zlib.crc32(b"<a") % 1000
    assert len(ngrams) == 1004


def test_every_ngram_occurs_once_and_a_short_word_has_one_at_least() -> None:
    ngrams = CharacterNgrams(1000, sizes=(3, 4))
    assert ngrams.parts("aaaaaa").count("aaa") == 1
    assert ngrams.parts("a") == ["<a>"]
    assert ngrams.parts("") == ["<>"]
    assert all(4 <= number < 1004 for number in ngrams.ids_of("Łódź\ud800"))


def test_forms_of_one_word_have_the_same_ngrams() -> None:
    ngrams = CharacterNgrams(500)
    wide = "\uff2e\uff21\uff29\uff36\uff25"
    assert ngrams.ids_of("Naïve") == ngrams.ids_of("naive") == ngrams.ids_of(wide)


def test_a_very_long_word_is_cut() -> None:
    ngrams = CharacterNgrams(500)
    assert ngrams.ids_of("x1" * MAX_NGRAM_CHARACTERS) == ngrams.ids_of(
        ("x1" * MAX_NGRAM_CHARACTERS) + "y"
    )


@pytest.mark.parametrize(("buckets", "sizes"), [(0, (3,)), (5, ()), (5, (0,))])
def test_sizes_below_one_are_refused(buckets: int, sizes: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="1 or more"):
        CharacterNgrams(buckets, sizes)


def test_only_words_without_an_entry_are_spelled_unless_known_ones_are_hidden() -> None:
    ngrams = CharacterNgrams(50, sizes=(3,))
    vocabulary = Vocabulary([*SPECIAL_WORDS, "dog"], folding=True)
    text = TextPipeline(WordTokenizer("whitespace"), vocabulary, ngrams)
    batch = text.batch([["dog", "wug"]])
    assert batch.character_counts.tolist() == [0, len(ngrams.ids_of("wug"))]
    assert batch.character_ids.tolist() == ngrams.ids_of("wug")
    table = text.table(spell_known=True)
    hidden = table.batch([table.row(["dog", "wug"], sentence_ends=False)])
    assert hidden.character_ids.tolist() == ngrams.ids_of("dog") + ngrams.ids_of("wug")

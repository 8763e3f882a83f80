"""Words, characters and n-grams, and their ids."""

from __future__ import annotations

import zlib

import pytest

from genpool.errors import InputError
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import (
    END,
    MAX_NGRAM_CHARACTERS,
    SPECIAL_WORDS,
    UNKNOWN,
    CharacterNgrams,
)

#: every way to write a double quote and a single one
DOUBLE_QUOTES = ['"', "``", "''", "\u201c", "\u201d", "\u201e", "\u201f"]
SINGLE_QUOTES = ["'", "`", "\u2018", "\u2019", "\u201a", "\u201b"]


def test_words_are_ordered_by_frequency_then_by_alphabet() -> None:
    vocabulary = Vocabulary.build({"rare": 1, "b": 5, "a": 5, "often": 9, "B": 5})
    assert vocabulary.words[4:] == ("often", "B", "a", "b", "rare")
    assert [vocabulary.id(word) for word in vocabulary.words[4:]] == [4, 5, 6, 7, 8]


def test_extra_words_follow_in_their_order_and_only_once() -> None:
    vocabulary = Vocabulary.build(
        {"dog": 3, "rare": 1}, minimum_count=2, extra_words=["zebra", "dog", "ape", "zebra"]
    )
    assert vocabulary.words[4:] == ("dog", "zebra", "ape")
    counts = {"a": 1, "b": 2, "c": 3}
    kept = [len(Vocabulary.build(counts, minimum).words) - 4 for minimum in (1, 2, 3, 4)]
    assert kept == [3, 2, 1, 0]


def test_all_quotes_have_the_id_of_one_and_are_spelled_alike() -> None:
    vocabulary = Vocabulary.build({'"': 2, "hi": 1, "'": 1})
    assert {vocabulary.id(quote) for quote in DOUBLE_QUOTES} == {vocabulary.ids['"']}
    assert {vocabulary.id(quote) for quote in SINGLE_QUOTES} == {vocabulary.ids["'"]}
    assert vocabulary.id('"') != vocabulary.id("'")
    characters = Characters("\"'s")
    assert {tuple(characters.ids_of(quote)) for quote in DOUBLE_QUOTES} == {(4,)}
    assert {tuple(characters.ids_of(quote)) for quote in SINGLE_QUOTES} == {(5,)}
    assert characters.ids_of("\u2019s") == characters.ids_of("'s") == [5, 6]


def test_a_word_that_is_not_there_is_looked_up_in_lower_case() -> None:
    vocabulary = Vocabulary.build({"brown": 1, "Paris": 1})
    assert vocabulary.id("BROWN") == vocabulary.id("Brown") == vocabulary.ids["brown"]
    # The fall-back goes one way: "paris" is not "Paris".
    assert vocabulary.id("paris") == UNKNOWN
    # Without it, a word is looked up exactly as written.
    vocabulary = Vocabulary.build({"brown": 1, "Paris": 1, "'s": 1}, lower_case_fallback=False)
    assert vocabulary.id("BROWN") == vocabulary.id("Brown") == UNKNOWN
    assert vocabulary.id("brown") == vocabulary.ids["brown"]
    assert vocabulary.id("Paris") == vocabulary.ids["Paris"]
    # Quote marks are still one word, however they are written.
    assert vocabulary.id("\u2019s") == vocabulary.ids["'s"]


def test_text_cannot_reach_or_move_the_special_entries() -> None:
    vocabulary = Vocabulary.build({"<s>": 50, "dog": 1, "<pad>": 9}, extra_words=["</s>"])
    assert vocabulary.words == (*SPECIAL_WORDS, "dog")
    for word in [*SPECIAL_WORDS, "<PAD>", "<Unk>", "<S>", "</S>"]:
        assert vocabulary.id(word) == UNKNOWN


IDS = {"<pad>": 0, "<unk>": 1, "<s>": 2, "</s>": 3, "dog": 4, "cat": 5}


@pytest.mark.parametrize(
    ("cat", "problem"),
    [
        (6, "no word has the id 5; 'cat' has 6. Expected the ids 0 to 5, one for each of the 6"),
        (4, "no word has the id 5; 'dog' has 4, 'cat' has 4"),
        (-1, "no word has the id 5; 'cat' has -1"),
    ],
)
def test_stored_ids_of_any_order_are_read_without_gap_or_repetition(cat: int, problem: str) -> None:
    vocabulary = Vocabulary.from_ids(dict(reversed(IDS.items())))
    assert vocabulary.ids == IDS and vocabulary.words[4:] == ("dog", "cat")
    with pytest.raises(InputError, match=problem):
        Vocabulary.from_ids({**IDS, "cat": cat})


def test_what_is_no_vocabulary_and_no_characters_is_refused() -> None:
    with pytest.raises(InputError, match=r"starts with .*<pad>.* starts with .'a', 'b', 'c', 'd'"):
        Vocabulary(["a", "b", "c", "d", "e"])
    with pytest.raises(InputError, match="'dog' occurs more than once"):
        Vocabulary([*SPECIAL_WORDS, "dog", "cat", "dog"])
    with pytest.raises(InputError, match="'b' occurs more than once"):
        Characters("abcb")


def test_characters_are_ordered_by_frequency_then_by_code_point() -> None:
    characters = Characters.build(["banana", "cab"])
    assert characters.characters == "abnc"
    assert len(characters) == 4 + 4 and len(Characters.build([])) == 4
    # Their ids follow the four reserved ones.
    assert Characters("abc").ids_of("cab") == [6, 4, 5]
    assert Characters("aA").ids_of("Axa\u00e9") == [5, UNKNOWN, 4, UNKNOWN]  # case is kept


def test_text_cannot_spell_the_sentence_ends() -> None:
    characters = Characters.build(["<s>", "</s>"])
    assert min(characters.ids_of("<s>") + characters.ids_of("</s>")) >= Characters.FIRST_ID > END


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
    wide = "\uff2e\uff21\uff29\uff36\uff25"
    assert ngrams.ids_of("Naïve") == ngrams.ids_of("naive") == ngrams.ids_of(wide)
    long = "x1" * MAX_NGRAM_CHARACTERS
    assert ngrams.ids_of(long) == ngrams.ids_of(long + "y")
    for buckets, sizes in [(0, (3,)), (5, ()), (5, (0,))]:
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

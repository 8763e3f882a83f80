"""Words and characters, and the numbers that stand for them."""

from __future__ import annotations

from collections import Counter

import pytest

from genpool.errors import InputError
from genpool.text import Characters, Vocabulary, count_words
from genpool.text.vocabulary import BEGIN, END, PAD, SPECIAL_WORDS, UNKNOWN

#: every way to write a double quote and a single one
DOUBLE_QUOTES = ['"', "``", "''", "\u201c", "\u201d", "\u201e", "\u201f"]
SINGLE_QUOTES = ["'", "`", "\u2018", "\u2019", "\u201a", "\u201b"]


def test_words_are_counted_over_all_sentences() -> None:
    counts = count_words([["a", "dog", "a"], [], ["A", "dog"]])
    assert counts == {"a": 2, "dog": 2, "A": 1}


def test_all_quotes_are_counted_as_one() -> None:
    assert count_words([DOUBLE_QUOTES, SINGLE_QUOTES]) == {'"': 7, "'": 6}


def test_special_entries_come_first() -> None:
    vocabulary = Vocabulary.build({})
    assert vocabulary.words == SPECIAL_WORDS and len(vocabulary) == 4
    assert (PAD, UNKNOWN, BEGIN, END) == (0, 1, 2, 3)


def test_words_stand_by_frequency_then_by_alphabet() -> None:
    vocabulary = Vocabulary.build({"rare": 1, "b": 5, "a": 5, "often": 9, "B": 5})
    assert vocabulary.words[4:] == ("often", "B", "a", "b", "rare")
    assert [vocabulary.id(word) for word in vocabulary.words[4:]] == [4, 5, 6, 7, 8]


def test_order_of_counting_does_not_matter() -> None:
    counts = Counter(["the", "cat", "sat", "on", "the", "mat", "the", "cat"])
    turned = dict(reversed(counts.items()))
    assert Vocabulary.build(counts).words == Vocabulary.build(turned).words


@pytest.mark.parametrize(
    ("minimum", "kept"), [(1, ("c", "b", "a")), (2, ("c", "b")), (3, ("c",)), (4, ())]
)
def test_words_below_the_minimum_count_are_left_out(minimum: int, kept: tuple[str, ...]) -> None:
    vocabulary = Vocabulary.build({"a": 1, "b": 2, "c": 3}, minimum_count=minimum)
    assert vocabulary.words[4:] == kept


def test_more_words_follow_in_their_order_and_only_once() -> None:
    vocabulary = Vocabulary.build(
        {"dog": 3, "rare": 1}, minimum_count=2, more_words=["zebra", "dog", "ape", "zebra"]
    )
    assert vocabulary.words[4:] == ("dog", "zebra", "ape")


def test_a_rare_word_comes_back_with_the_words_of_a_vector_file() -> None:
    vocabulary = Vocabulary.build({"rare": 1}, minimum_count=2, more_words=["rare"])
    assert vocabulary.words[4:] == ("rare",)


def test_more_words_are_looked_up_by_any_quote() -> None:
    vocabulary = Vocabulary.build({}, more_words=["``", "''", "\u2019s"])
    assert vocabulary.words[4:] == ('"', "'s")
    assert {vocabulary.id(quote) for quote in DOUBLE_QUOTES} == {4}
    assert vocabulary.id("'s") == vocabulary.id("\u2019s") == 5


def test_all_quotes_have_the_number_of_one() -> None:
    vocabulary = Vocabulary.build(count_words([["``", "hi", "''", "`"]]))
    assert {vocabulary.id(quote) for quote in DOUBLE_QUOTES} == {vocabulary.ids['"']}
    assert {vocabulary.id(quote) for quote in SINGLE_QUOTES} == {vocabulary.ids["'"]}
    assert vocabulary.id('"') != vocabulary.id("'")


def test_case_is_kept_where_both_are_entries() -> None:
    vocabulary = Vocabulary.build({"Brown": 1, "brown": 1})
    assert vocabulary.id("Brown") != vocabulary.id("brown")


def test_a_word_that_is_not_there_is_looked_up_in_lower_case() -> None:
    vocabulary = Vocabulary.build({"brown": 1, "Paris": 1})
    assert vocabulary.id("BROWN") == vocabulary.id("Brown") == vocabulary.ids["brown"]
    # The fall-back goes one way: "paris" is not "Paris".
    assert vocabulary.id("paris") == UNKNOWN


def test_a_word_that_is_not_found_is_unknown() -> None:
    vocabulary = Vocabulary.build({"dog": 1})
    assert [vocabulary.id(word) for word in ("cat", "", "dogs", "\U0001f642")] == [UNKNOWN] * 4


@pytest.mark.parametrize("word", [*SPECIAL_WORDS, "<PAD>", "<Unk>", "<S>", "</S>"])
def test_special_entries_cannot_be_reached_from_text(word: str) -> None:
    assert Vocabulary.build({"dog": 1}).id(word) == UNKNOWN


def test_special_words_of_the_text_do_not_move_the_special_entries() -> None:
    vocabulary = Vocabulary.build({"<s>": 50, "dog": 1, "<pad>": 9}, more_words=["</s>"])
    assert vocabulary.words == (*SPECIAL_WORDS, "dog")


def test_a_vocabulary_can_be_made_again_from_its_words() -> None:
    first = Vocabulary.build({"a": 2, "b": 1})
    second = Vocabulary(list(first.words))
    assert second.words == first.words and second.ids == first.ids


def test_a_vocabulary_without_the_special_entries_is_refused() -> None:
    with pytest.raises(InputError, match="begins with") as caught:
        Vocabulary(["a", "b", "c", "d", "e"])
    assert "<pad>" in str(caught.value) and "'a', 'b', 'c', 'd'" in str(caught.value)


def test_a_vocabulary_that_is_too_short_is_refused() -> None:
    with pytest.raises(InputError, match="begins with"):
        Vocabulary(["<pad>", "<unk>"])


@pytest.mark.parametrize("twice", ["dog", "<s>"])
def test_a_word_that_stands_twice_is_refused_by_name(twice: str) -> None:
    with pytest.raises(InputError, match=f"{twice!r} stands more than once"):
        Vocabulary([*SPECIAL_WORDS, "dog", "cat", twice])


def test_characters_stand_by_frequency_then_by_order() -> None:
    characters = Characters.build(["banana", "cab"])
    assert characters.characters == "abnc"
    assert len(characters) == 4 + 4


def test_letters_are_numbered_behind_the_four_special_ones() -> None:
    characters = Characters("abc")
    assert characters.spell("cab") == [6, 4, 5]


def test_an_unknown_letter_has_one_number() -> None:
    assert Characters("ab").spell("axb\u00e9") == [4, UNKNOWN, 5, UNKNOWN]


def test_case_of_letters_is_kept() -> None:
    assert Characters("aA").spell("Aa") == [5, 4]


def test_all_quotes_are_spelled_alike() -> None:
    characters = Characters("\"'s")
    assert {tuple(characters.spell(quote)) for quote in DOUBLE_QUOTES} == {(4,)}
    assert {tuple(characters.spell(quote)) for quote in SINGLE_QUOTES} == {(5,)}
    assert characters.spell("\u2019s") == characters.spell("'s") == [5, 6]


def test_no_letters_are_no_numbers() -> None:
    assert Characters("ab").spell("") == []
    assert len(Characters("")) == 4 and len(Characters.build([])) == 4


def test_a_letter_that_stands_twice_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="'b' stands more than once"):
        Characters("abcb")


def test_text_cannot_spell_the_sentence_ends() -> None:
    characters = Characters.build(["<s>", "</s>"])
    assert min(characters.spell("<s>") + characters.spell("</s>")) >= Characters.FIRST > END

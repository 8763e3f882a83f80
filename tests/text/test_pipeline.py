"""From a sentence to a batch."""

from __future__ import annotations

import json

import pytest

from genpool.errors import InputError
from genpool.text import Characters, TextPipeline, Token, Vocabulary, WordTokenizer
from genpool.text.stored_tokenizer import StoredTokenizer, read_tokenizer
from genpool.text.vocabulary import BEGIN, END, PAD, UNKNOWN

VOCABULARY = Vocabulary.build({"A": 1, "man": 1, "sleeps": 1, ".": 1})


def pipeline(rules: str = "penn", **options) -> TextPipeline:
    return TextPipeline(
        WordTokenizer(rules), VOCABULARY, Characters.build(VOCABULARY.words[4:]), **options
    )


def test_tokens_have_their_places_in_the_sentence() -> None:
    sentence = "A man sleeps."
    tokens = pipeline().tokens(sentence)
    assert tokens == [
        Token("A", 0, 1),
        Token("man", 2, 5),
        Token("sleeps", 6, 12),
        Token(".", 12, 13),
    ]
    assert all(sentence[token.start : token.end] == token.text for token in tokens)


def test_words_are_the_texts_of_the_tokens() -> None:
    assert pipeline().words("A man sleeps.") == ["A", "man", "sleeps", "."]
    assert pipeline("whitespace").words("A man sleeps.") == ["A", "man", "sleeps."]


def test_a_batch_has_the_ids_of_the_vocabulary() -> None:
    text = pipeline()
    batch = text.batch([text.words("A man sleeps."), text.words("A zebra")])
    ids = VOCABULARY.ids
    assert batch.ids.tolist() == [
        [ids["A"], ids["man"], ids["sleeps"], ids["."]],
        [ids["A"], UNKNOWN, PAD, PAD],
    ]


def test_no_sentence_ends_unless_asked_for() -> None:
    assert pipeline().batch([["man"]]).ids.tolist() == [[VOCABULARY.ids["man"]]]


def test_sentence_ends_surround_every_sentence_even_an_empty_one() -> None:
    batch = pipeline(sentence_ends=True).batch([["man"], []])
    assert batch.ids.tolist() == [[BEGIN, VOCABULARY.ids["man"], END], [BEGIN, END, PAD]]


@pytest.mark.parametrize("sentence", ["", "   ", "\t\n"])
def test_a_sentence_of_spaces_has_no_tokens(sentence: str) -> None:
    text = pipeline()
    assert text.words(sentence) == []
    assert text.batch([text.words(sentence)]).lengths.tolist() == [0]


def test_nothing_is_truncated_unless_asked_for() -> None:
    text = pipeline("whitespace")
    assert len(text.words("man " * 20_000)) == 20_000
    assert (text.cut.sentences, text.cut.tokens) == (0, 0)


def test_a_long_sentence_is_truncated_to_its_first_tokens_and_counted() -> None:
    text = pipeline(max_length=2)
    assert text.tokens("A man sleeps.") == [Token("A", 0, 1), Token("man", 2, 5)]
    assert (text.cut.sentences, text.cut.tokens) == (1, 2)
    assert text.words("A man") == ["A", "man"]
    assert (text.cut.sentences, text.cut.tokens) == (1, 2)
    assert text.words("A man sleeps") == ["A", "man"]
    assert (text.cut.sentences, text.cut.tokens) == (2, 3)


def test_the_truncation_report_can_be_read() -> None:
    text = pipeline(max_length=1)
    text.words("A man sleeps.")
    assert str(text.cut) == "1 sentence was truncated by 3 tokens in total"
    text.words("A man")
    assert str(text.cut) == "2 sentences were truncated by 4 tokens in total"


def test_two_pipelines_count_apart() -> None:
    first, second = pipeline(max_length=1), pipeline(max_length=1)
    first.words("A man")
    assert (first.cut.sentences, second.cut.sentences) == (1, 0)


def test_sentence_ends_are_not_counted_in_the_maximum_length() -> None:
    text = pipeline(max_length=2, sentence_ends=True)
    batch = text.batch([text.words("A man sleeps.")])
    assert batch.ids.tolist() == [[BEGIN, VOCABULARY.ids["A"], VOCABULARY.ids["man"], END]]


def test_a_table_belongs_to_the_pipelines_vocabulary() -> None:
    text = pipeline()
    table = text.table()
    row = table.row(["man", "zebra"], sentence_ends=False)
    assert table.batch([row]).ids.tolist() == [[VOCABULARY.ids["man"], UNKNOWN]]
    assert text.table() is not table


@pytest.mark.parametrize("length", [0, -1])
def test_a_maximum_length_below_one_is_refused(length: int) -> None:
    with pytest.raises(InputError, match=rf"max_length is {length}; expected 1 or more, or None"):
        pipeline(max_length=length)


def stored(**changes: int) -> StoredTokenizer:
    """The tokenizer of a saved pipeline, with other ids for some words."""
    content = json.loads(pipeline().to_tokenizers().to_str())
    content["model"]["vocab"].update(changes)
    return read_tokenizer(json.dumps(content))


@pytest.mark.parametrize("fallback", [True, False])
def test_a_pipeline_comes_back_from_its_tokenizer(fallback: bool) -> None:
    text = pipeline(sentence_ends=True, max_length=3)
    characters = text.characters.characters
    loaded = TextPipeline.from_stored(stored(), characters, True, 3, fallback)
    assert loaded.vocabulary.words == VOCABULARY.words
    assert loaded.characters.characters == characters
    assert loaded.vocabulary.lower_case_fallback is fallback
    assert (loaded.sentence_ends, loaded.max_length, loaded.tokenizer.rules) == (True, 3, "penn")
    sentence = "A man sleeps. Man's"
    assert loaded.tokens(sentence) == text.tokens(sentence)
    expected = VOCABULARY.ids["man"] if fallback else UNKNOWN
    assert loaded.batch([["Man"]]).ids.tolist() == [[BEGIN, expected, END]]


def test_a_tokenizer_in_which_one_id_was_changed_is_refused() -> None:
    # Sorting by id would give every word behind the gap the vector of its neighbour.
    last = len(VOCABULARY)
    with pytest.raises(InputError, match=rf"the id {last} of the word 'man' is out of range"):
        TextPipeline.from_stored(stored(man=last), "a")


def test_a_tokenizer_with_one_id_for_two_words_is_refused() -> None:
    with pytest.raises(InputError, match=r"is that of '(A|man)' too"):
        TextPipeline.from_stored(stored(man=VOCABULARY.ids["A"]), "a")

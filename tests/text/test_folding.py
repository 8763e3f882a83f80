"""Other ways of writing a word are the same word, and offsets are those of the sentence."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Literal, get_args

import pytest

from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.tokenizer import folded, read_tokenizer
from genpool.text.vocabulary import SPECIAL_WORDS, UNKNOWN

#: forms in which Unicode writes accents
Form = Literal["NFC", "NFD", "NFKD"]


def full_width(text: str) -> str:
    """Returns ASCII characters in their full-width forms; spaces stay."""
    return "".join(letter if letter == " " else chr(ord(letter) + 0xFEE0) for letter in text)


#: what is written, and the plain form that it must be equal to
FORMS = {
    "an accent": ("The café is open.", "The cafe is open."),
    "an accent as a character of its own": ("The cafe\u0301 is open.", "The cafe is open."),
    "a curly apostrophe": ("I don\u2019t know.", "I don't know."),
    "a modifier apostrophe": ("I don\u02bct know.", "I don't know."),
    "a prime": ("I don\u2032t know.", "I don't know."),
    "full-width letters": (full_width("don't go,now!"), "don't go, now!"),
    "a space without width": ("a wo\u200brd he\ufeffre", "a word here"),
    "a soft hyphen": ("a wo\u00adrd", "a word"),
    "capitals": ("THE DOG DOESN'T RUN.", "the dog doesn't run."),
    "a ligature": ("a ﬁne day", "a fine day"),
    "curly double quotes": ("he said “no”", 'he said "no"'),
}


@pytest.mark.parametrize("name", FORMS)
def test_another_way_of_writing_has_the_words_of_the_plain_one_and_its_own_offsets(
    name: str,
) -> None:
    written, plain = FORMS[name]
    tokenizer = WordTokenizer("parts", folding=True)
    tokens = tokenizer.tokens(written)
    assert [folded(token.text) for token in tokens] == list(map(folded, tokenizer.words(plain)))
    assert all(written[token.start : token.end] == token.text for token in tokens)
    assert tokenizer.words_batch([written]) == [[token.text for token in tokens]]
    left = set(range(len(written))) - {
        place for token in tokens for place in range(token.start, token.end)
    }
    # Only spaces, and what has no width and stands at the edge of a word, are in no token.
    assert all(
        written[place].isspace() or unicodedata.category(written[place]) == "Cf" for place in left
    )


@pytest.mark.parametrize("form", get_args(Form))
@pytest.mark.parametrize("text", ["un café", "façade d'été", "한국어 문장", "কো কৌ", "Ǆ ǆ"])
def test_accents_at_the_end_belong_to_their_word(text: str, form: Form) -> None:
    """The ways of writing an accent have the same words, and a word has all of its characters."""
    tokenizer = WordTokenizer("parts", folding=True)
    written = unicodedata.normalize(form, text)
    plain = [folded(word) for word in tokenizer.words(text)]
    for words in (tokenizer.words(written), *tokenizer.words_batch([written])):
        assert "".join(words) == "".join(written.split())
        assert [folded(word) for word in words] == plain
    assert tokenizer.words(f"\u202a {written} \u202c") == tokenizer.words(written)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("½ cup, ¾ done", ["½", "cup", ",", "¾", "done"]),  # normalized to two words each
        ("x\u2019s \ud800 y", ["x", "\u2019s", "\ud800", "y"]),  # half of a surrogate pair
        ("ok 👩\u200d💻!", ["ok", "👩\u200d💻", "!"]),  # joined emoji
    ],
)
def test_unusual_characters_stay_one_token(text: str, words: list[str]) -> None:
    tokenizer = WordTokenizer("parts", folding=True)
    tokens = tokenizer.tokens(text)
    assert [token.text for token in tokens] == tokenizer.words_batch([text])[0] == words
    assert all(first.end <= second.start for first, second in pairwise(tokens))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a well-known fact", ["a", "well", "-", "known", "fact"]),
        ("his/her U.S.-based", ["his", "/", "her", "U.S.", "-", "based"]),
        ("see example.com, e.g. 3.5", ["see", "example", ".", "com", ",", "e.g.", "3.5"]),
        ("@name #tag -5 :-)", ["@", "name", "#", "tag", "-", "5", ":-)"]),
    ],
)
def test_parts_of_words_are_words(text: str, words: list[str]) -> None:
    assert WordTokenizer("parts").words(text) == words


def test_a_vocabulary_with_folding_has_one_entry_for_all_forms() -> None:
    counts = {"Café": 2, "cafe": 1, "N\u2019T": 4, "dog": 1}
    vocabulary = Vocabulary.build(counts, folding=True, extra_words=["DOG", "Ünder"])
    assert vocabulary.words[4:] == ("n't", "cafe", "dog", "under")
    ids = {
        vocabulary.id(form)
        for form in ("café", "CAFÉ", "cafe\u0301", "\uff43\uff41\uff46\uff45", "ca\u200bfe")
    }
    assert ids == {vocabulary.ids["cafe"]}
    assert vocabulary.id("<pad>") == UNKNOWN and vocabulary.id("naïve") == UNKNOWN


def test_without_folding_nothing_has_changed() -> None:
    plain = Vocabulary([*SPECIAL_WORDS, "cafe"])
    assert plain.id("café") == UNKNOWN and plain.id("CAFE") == 4
    wide = "\uff44\uff4f\uff4e \uff07 \uff54"  # no apostrophe without folding
    assert WordTokenizer().words(f"well-known {wide.replace(' ', '')}") == [
        "well-known",
        *wide.split(),
    ]


def test_a_stored_tokenizer_splits_as_the_one_that_was_stored() -> None:
    text = TextPipeline(
        WordTokenizer("parts", folding=True),
        Vocabulary([*SPECIAL_WORDS, "do", "n't"], folding=True),
        Characters(""),
    )
    stored = read_tokenizer(text.to_tokenizers().to_str())
    again = TextPipeline.from_stored(stored, "", folding=True)
    sentence = "I don\u02bct know a well-known ca\u200bfé"
    assert again.tokens(sentence) == text.tokens(sentence)
    assert again.tokenizer.rules == "parts" and again.tokenizer.folding
    assert again.vocabulary.id("\uff4e\uff07\uff54") == 5

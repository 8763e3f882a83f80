"""Sentences to words with offsets: the Penn conventions, and what holds for any text at all."""

# ruff: noqa: RUF001  (curly quotes and dashes are what is tested here)

from __future__ import annotations

import lzma
import pickle
import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from genpool.errors import ConfigError
from genpool.text.tokenizer import Token, WordTokenizer, canonical
from tests.helpers.shared_data import shared_data

PENN = WordTokenizer("penn")
WHITESPACE = WordTokenizer("whitespace")
BOTH = pytest.mark.parametrize("tokenizer", [PENN, WHITESPACE], ids=lambda one: one.rules)

# Each case reads: the sentence, then its tokens with a bar between them.
CASES = {
    "clitics": [
        ("It's theirs.", "It|'s|theirs|."),
        ("we're you've she'll he'd I'm", "we|'re|you|'ve|she|'ll|he|'d|I|'m"),
        ("JOE'S the 80's", "JOE|'S|the|80|'s"),
        ("Joe’s they’re", "Joe|’s|they|’re"),
        ("I'd've Yahoo!'s", "I|'d|'ve|Yahoo|!|'s"),
        ("the workers' rights", "the|workers|'|rights"),
        ("women's-only", "women's-only"),
        ("o'clock L'Oreal y'all", "o'clock|L'Oreal|y'all"),
    ],
    "negation": [
        ("don't can't won't", "do|n't|ca|n't|wo|n't"),
        ("ISN'T doesn’t", "IS|N'T|does|n’t"),
        ("shouldn't've", "should|n't|'ve"),
        ("the don'ts", "the|don'ts"),
    ],
    "two words written as one": [
        ("I cannot. CANNOT", "I|can|not|.|CAN|NOT"),
        ("gonna Wanna gotta gimme lemme", "gon|na|Wan|na|got|ta|gim|me|lem|me"),
        ("'Tis more'n d'ye", "'T|is|more|'n|d'|ye"),
        ("cannots wannabe Gottard", "cannots|wannabe|Gottard"),
    ],
    "full stops": [
        ("A man sleeps.", "A|man|sleeps|."),
        ("It fit. I loved it. Really.", "It|fit|.|I|loved|it|.|Really|."),
        ("\"Done.\" (Done.) 'Done.'", "\"|Done|.|\"|(|Done|.|)|'|Done|.|'"),
        ("home..", "home|.|."),
        ("So do I. Then it rained.", "So|do|I|.|Then|it|rained|."),
        ("We waited .Then it rained.", "We|waited|.|Then|it|rained|."),
        ("amazon.com 3.99 .5", "amazon.com|3.99|.5"),
    ],
    "abbreviations": [
        ("Mr. and Mrs. Fox saw Dr. Hare.", "Mr.|and|Mrs.|Fox|saw|Dr.|Hare|."),
        ("CORP. corp. Inc., etc.)", "CORP.|corp.|Inc.|,|etc.|)"),
        ("the U.S. Navy at 6 a.m. today", "the|U.S.|Navy|at|6|a.m.|today"),
        ("J. K. Fox, Ph.D., of the U.K.'s", "J.|K.|Fox|,|Ph.D.|,|of|the|U.K.|'s"),
        ("U.S.-based", "U.S.-based"),
        ("Gen. Fox is the next gen. Yes", "Gen.|Fox|is|the|next|gen|.|Yes"),
        ("No. 5, vol. 2. No. None.", "No.|5|,|vol.|2|.|No|.|None|."),
        ("a robot called Wall-E.", "a|robot|called|Wall-E|."),
        ("The mist. The host. It is amiss.", "The|mist|.|The|host|.|It|is|amiss|."),
    ],
    "ellipsis": [
        ("Well... no…", "Well|...|no|…"),
        ("Well.... ", "Well|...|."),
    ],
    "hyphens and dashes": [
        ("a t-shirt, merry-go-round", "a|t-shirt|,|merry-go-round"),
        ("yes -- no--maybe — so–so", "yes|--|no|--|maybe|—|so|–|so"),
        ("viewer- he -she", "viewer|-|he|-|she"),
        ("-5 and (-3) 10-20", "-5|and|(|-3|)|10-20"),
    ],
    "brackets": [
        ("(two) [three] {four}", "(|two|)|[|three|]|{|four|}"),
        ("-LRB- two -RRB-", "-LRB-|two|-RRB-"),
    ],
    "double quotes": [
        ('a "red" hat', 'a|"|red|"|hat'),
        ("a “red” hat", "a|“|red|”|hat"),
        ("a ``red'' hat", "a|``|red|''|hat"),
        ('"sad," he said', '"|sad|,|"|he|said'),
    ],
    "single quotes": [
        ("a 'red' hat", "a|'|red|'|hat"),
        ("a ‘red’ hat", "a|‘|red|’|hat"),
        ("the letter 's' or 'S'.", "the|letter|'|s|'|or|'|S|'|."),
        ("the '60s", "the|'60s"),
        ("get 'em", "get|'em"),
        ("rock 'n' roll, goin' home", "rock|'n'|roll|,|goin'|home"),
    ],
    "commas and colons": [
        ("red, blue,green", "red|,|blue|,|green"),
        ("1,000,000, or 2", "1,000,000|,|or|2"),
        ("note: at 10:30; go", "note|:|at|10:30|;|go"),
    ],
    "marks at the end": [
        ("What?! No!!", "What|?|!|No|!|!"),
        ("yes?no", "yes|?|no"),
    ],
    "money, percent, numbers": [
        ("$5.99 £3 50% #1", "$|5.99|£|3|50|%|#|1"),
        ("2nd 1/8 24/7 ½", "2nd|1/8|24/7|½"),
    ],
    "signs": [
        ("a grade A+, 2 + 2 (at@ home)", "a|grade|A|+|,|2|+|2|(|at|@|home|)"),
        ("his/her pool/ x", "his/her|pool|/|x"),
        ("AT&T R&B salt&pepper Red&", "AT&T|R&B|salt|&|pepper|Red|&"),
        ("*very* f**k snake_case _so_", "*|very|*|f**k|snake_case|_|so|_"),
    ],
    "addresses": [
        ("see http://a.org/x?y=1&z=2.", "see|http://a.org/x?y=1&z=2|."),
        ("(www.a.org), https://a.org!", "(|www.a.org|)|,|https://a.org|!"),
        ("mail me@a.co.uk, @fox #love", "mail|me@a.co.uk|,|@fox|#love"),
    ],
    "emoticons": [
        ("good :) bad :-( :D <3", "good|:)|bad|:-(|:D|<3"),
        ("good:)))", "good|:)))"),
        ("a list: (one) 4:3", "a|list|:|(|one|)|4:3"),
    ],
    "emoji": [
        ("nice😀😀", "nice|😀|😀"),
        ("👍🏽 👩‍👩‍👧 🇫🇷🇩🇪 ❤️", "👍🏽|👩‍👩‍👧|🇫🇷|🇩🇪|❤️"),
    ],
    "markup": [
        ("<b>big</b><br/>", "<b>|big|</b>|<br/>"),
        ("salt &amp; &#34;", "salt|&amp;|&#34;"),
        ("1 < 2 > 0", "1|<|2|>|0"),
    ],
    "other scripts": [
        ("naïve Ångström cafe\u0301", "naïve|Ångström|cafe\u0301"),
        ("中文。好", "中文|。|好"),
        ("这是中.", "这是中|."),
        ("«Да», нет", "«|Да|»|,|нет"),
    ],
}

# Text made mostly of the characters that the rules look at.
HOSTILE_LETTERS = "an'’‘\"`.-_/*+@#&,:;()<>=^ \tIS1sthtpwm\u0301\u200d\ufe0f😀🇫中é\x1c\x85\u3000"
TEXT = st.text() | st.text(HOSTILE_LETTERS) | st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize("name", CASES)
def test_penn_conventions(name: str) -> None:
    for sentence, expected in CASES[name]:
        assert PENN.words(sentence) == expected.split("|"), sentence


def test_tokens_carry_their_place_and_case() -> None:
    places = [("It", 1, 3), ("'s", 3, 5), ("RED", 6, 9), (".", 9, 10)]
    assert PENN.tokens(" It's RED.") == places
    assert PENN.words("bad\ud83d text") == ["bad", "\ud83d", "text"]  # half of a surrogate pair
    assert PENN.tokens("😀 中.") == [Token("😀", 0, 1), Token("中", 2, 3), Token(".", 3, 4)]


def test_penn_leaves_penn_tokens_alone() -> None:
    tokens = "`` It ca n't be , '' said Mr. Fox 's ( old ) dog -- not 1,000 % ..."
    assert PENN.words(tokens) == tokens.split(" ")


def test_whitespace_is_what_python_calls_whitespace() -> None:
    spaces = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    look_alikes = ["\u180e", "\u200b", "\u2060", "\ufeff", "\x00"]
    for between in spaces + look_alikes:
        sentence = f"a{between}b"
        assert WHITESPACE.words(sentence) == sentence.split(), repr(between)


@BOTH
@settings(deadline=None)
@example("")
@example(" \t\n\u00a0\u3000\x1c ")
@given(sentence=TEXT)
def test_tokens_cover_all_but_the_spaces_once(tokenizer: WordTokenizer, sentence: str) -> None:
    tokens = tokenizer.tokens(sentence)
    assert [sentence[token.start : token.end] for token in tokens] == [t.text for t in tokens]
    assert tokenizer.words(sentence) == [token.text for token in tokens]
    covered = [offset for token in tokens for offset in range(token.start, token.end)]
    assert covered == [at for at, character in enumerate(sentence) if not character.isspace()]


@settings(deadline=None)
@given(sentence=TEXT)
def test_whitespace_rules_are_those_of_str_split(sentence: str) -> None:
    assert WHITESPACE.words(sentence) == sentence.split()


@settings(deadline=None)
@given(words=st.lists(st.from_regex(r"[A-Za-z]{2,12}", fullmatch=True)))
def test_penn_splits_no_plain_word_but_the_double_ones(words: list[str]) -> None:
    double = {"cannot", "gonna", "wanna", "gotta", "gimme", "lemme"}
    plain = [word for word in words if word.lower() not in double]
    assert PENN.words(" ".join(plain)) == plain


def test_a_tokenizer_is_saved_and_copied_and_has_one_of_the_known_rules() -> None:
    vocabulary = {"<unk>": 0, "It": 1, "'s": 2, "red": 3, ".": 4}
    encoding = PENN.to_tokenizers(vocabulary).encode("It's dark red.")
    assert encoding.ids == [1, 2, 0, 3, 4]
    assert encoding.offsets == [(t.start, t.end) for t in PENN.tokens("It's dark red.")]
    copy = pickle.loads(pickle.dumps(PENN))
    assert copy.rules == "penn"
    assert copy.tokens("It's red.") == PENN.tokens("It's red.")
    with pytest.raises(ConfigError, match=r"'pen'.*Did you mean 'penn'.*penn, whitespace"):
        WordTokenizer("pen")


def test_canonical_form_of_quotes() -> None:
    double = ["``", "''", "“", "”", "’’", '"']
    assert {canonical(word) for word in double} == {'"'}
    assert {canonical(word) for word in ["‘", "’", "`", "'"]} == {"'"}
    assert canonical("n’t") == "n't" and canonical("’s") == "'s"
    assert all(canonical(word) == word for word in ("Red", "café", ""))


@BOTH
def test_a_very_long_word_and_a_very_long_text_are_read(tokenizer: WordTokenizer) -> None:
    assert tokenizer.tokens("a" * 100_000) == [Token("a" * 100_000, 0, 100_000)]
    text = "It did not fit me , so I sent it back . " * 25_000  # a million characters
    assert tokenizer.words(text) == text.split()


HOSTILE_UNITS = [
    "a", "n'", "'", "’ ", "-", "-_", "_", "a_", "_a", ".", "a.", "a. ", "*", "a*", "/", "a/", "+",
    ":(", "<a", "</", "&a", "&#1", "http://.", "www.", "https://a.", "a@", "a@b.", "#", "1,", "can",
    "Mr.", "No. ", "in'", ">_", "👨\u200d", "\u200d", "🇫", "e\u0301", " ", "\n",
]  # fmt: skip


def processor_seconds(sentence: str) -> float:
    """The least processor time of five runs: other processes do not add to it."""
    seconds = []
    for _ in range(5):
        start = time.thread_time()
        PENN.words(sentence)
        seconds.append(time.thread_time() - start)
    return min(seconds)


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE_UNITS)
def test_time_grows_with_the_length_and_not_with_its_square(unit: str) -> None:
    short, long = unit * (2_000 // len(unit)), unit * (32_000 // len(unit))
    # 16 times the text: about 16 times the time when linear, 256 times when quadratic.
    assert processor_seconds(long) / processor_seconds(short) < 100


def snli(name: str) -> list[str]:
    """Both sentences of every row of a SNLI file."""
    with lzma.open(shared_data(f"snli/{name}"), "rt", encoding="utf-8", newline="\n") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return [sentence for row in rows[1:] for sentence in row[1:]]


def test_penn_agrees_with_the_tokens_of_snli() -> None:
    raw, reference = snli("test.raw.tsv.xz"), snli("test.tsv.xz")
    quotes = {"``": '"', "''": '"'}
    agreeing = sum(
        [quotes.get(word, word) for word in PENN.words(sentence)]
        == [quotes.get(word, word) for word in tokens.split(" ")]
        for sentence, tokens in zip(raw, reference, strict=True)
    )
    assert len(raw) == 19_648
    assert agreeing / len(raw) >= 0.99

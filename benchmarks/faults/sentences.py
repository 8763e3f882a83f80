"""Sentences that a fuzzer makes up: any characters, any length, the same vector everywhere.

Run with `python -m benchmarks.faults.sentences [COUNT]` (100,000 sentences). Every vector must be
finite and the same (to 1e-5) alone, in a batch of others, and from the quick form; its tokens must
be pieces of the sentence, in order, with nothing but spaces between them (with folding also
characters without width).
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.faults.cases import Problem, Tally, count_argument, main, run_cases
from genpool import SentenceEncoder
from genpool.inference.quick import QuickEncoder
from genpool.text import WordTokenizer

COUNT, SEED = 100_000, 0
#: sentences of one case, which are one batch too
BATCH = 50
#: of these, one in ALONE is encoded alone
ALONE = 10
TOLERANCE = 1e-5
#: first and last character of what sentences are made of
RANGES = [
    (0x20, 0x7E),
    (0x61, 0x7A),
    (0x00, 0x1F),
    (0x80, 0xFF),
    (0x300, 0x36F),  # combining marks
    (0x370, 0x5FF),  # Greek, Cyrillic, Armenian, Hebrew
    (0x600, 0x8FF),  # Arabic and others from right to left
    (0x900, 0x1FFF),
    (0x2000, 0x2BFF),  # spaces, directions, punctuation, symbols
    (0x2E80, 0xD7FF),
    (0xD800, 0xDFFF),  # halves of surrogate pairs
    (0xE000, 0xFFFF),
    (0x10000, 0x1FFFF),
    (0x20000, 0x10FFFF),
]
FRAGMENTS = [
    "the man", "isn't", "can't've", "http://a.b/?c=d#e", "...", "--", "``", "''", "'s", "e.g.",
    "No. 5", ":-)", "</a>", "&amp;", "@x", "#y", "$5.00", "10,000", "<pad>", "<unk>", "</s>",
    "\u202e", "\u200d", "\ufeff", "\u2028", "\x00", "\x1c", "👩‍👩‍👧", "🇩🇪", "ﬁ", "ß", "İ", "ǆ",
    "\ud83d", "\udc00", "<!--", "(" * 50, "_" * 60, "*/+" * 30, "\u0301" * 80, "a" * 300,
    ".a" * 200,
]  # fmt: skip


def sentence(chance: random.Random) -> str:
    """Returns one sentence."""
    kind = chance.randrange(20)
    if kind == 0:
        return ""
    if kind == 1:  # one very long word, or a very long line of one piece
        piece = chance.choice([chr(chance.choice(_characters(chance, 3))), *FRAGMENTS])
        return piece * chance.randrange(1, 4000 // len(piece) + 2)
    if kind <= 6:
        return chance.choice([" ", ""]).join(
            chance.choice(FRAGMENTS) for _ in range(chance.randrange(12))
        )
    words = (
        "".join(map(chr, _characters(chance, chance.choice((1, 3, 8, 30)))))
        for _ in range(chance.choice((1, 5, 12, 12, 12, 40)))
    )
    return chance.choice([" ", " ", "\u3000", "\t", ""]).join(words)


def _characters(chance: random.Random, count: int) -> list[int]:
    """Code points of a word: of one range, or of any."""
    ranges = [chance.choice(RANGES)] if chance.random() < 0.7 else RANGES
    return [chance.randint(*chance.choice(ranges)) for _ in range(chance.randint(1, count))]


def check_tokens(tokenizer: WordTokenizer, text: str) -> None:
    """Raises Problem unless the tokens are the sentence without its spaces."""
    end = 0
    for token in tokenizer.tokens(text):
        gap = text[end : token.start]
        if text[token.start : token.end] != token.text or _visible(gap, tokenizer.folding):
            raise Problem(f"tokens of {text!r}")
        if not token.text or token.start < end:
            raise Problem(f"an empty token, or one twice, in {text!r}")
        end = token.end
    if _visible(text[end:], tokenizer.folding):
        raise Problem(f"the end of {text!r} has no token")


def _visible(gap: str, folding: bool) -> str:
    """What is left of characters that no token has, if those that may be in none are removed."""
    if folding:
        gap = "".join(character for character in gap if unicodedata.category(character) != "Cf")
    return gap.strip()


def sentence_case(model: SentenceEncoder) -> Callable[[int], str]:
    """Returns the cases: BATCH sentences each."""
    torch.set_num_threads(1)
    quick = QuickEncoder(model)

    def case(number: int) -> str:
        chance = random.Random(f"{SEED} sentences {number}")
        texts = [sentence(chance) for _ in range(BATCH)]
        together = model.encode(texts, batch_size=chance.choice((7, 16, BATCH)))
        if not np.isfinite(together).all():
            raise Problem(f"not finite: {texts[int(np.isnan(together).any(axis=1).argmax())]!r}")
        _compare(together, quick.encode(texts), texts, "quick form")
        for position in range(number % ALONE, BATCH, ALONE):
            text = texts[position]
            check_tokens(model.text.tokenizer, text)
            _compare(model.encode([text]), together[position : position + 1], [text], "alone")
        return "same vectors"

    return case


def _compare(actual: np.ndarray, expected: np.ndarray, texts: list[str], where: str) -> None:
    difference = np.abs(actual - expected).max(axis=1)  # (sentences,)
    if difference.max() > TOLERANCE:
        worst = int(difference.argmax())
        raise Problem(f"{where}: {difference[worst]:.1e} apart: {texts[worst]!r}")


def run(model: SentenceEncoder, count: int) -> Tally:
    """Returns what happened to batches of sentences."""
    # The quick form's table of words alone may take 0.4 GB, twice in address space.
    return run_cases(sentence_case(model), count // BATCH, seconds=60, memory=4 * 2**30)


if __name__ == "__main__":
    tally = run(SentenceEncoder.from_pretrained(), count_argument(COUNT))
    main(f"sentences (cases of {BATCH})", [("embedded encoder", tally)])

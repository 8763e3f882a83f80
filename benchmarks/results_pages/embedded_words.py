"""What the embedded encoder makes of words: those it lacks, and other ways of writing them.

Everything is measured on sentences of english/ that no recipe learns from: the first of each
source (`HELD_OUT`), which the recipe `embedded-general` holds out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import data_path
from genpool import SentenceEncoder
from genpool.distillation.corpus import read_corpus
from genpool.distillation.settings import CorpusSettings
from genpool.evaluation.similarity import cosine_pairs
from genpool.text.vocabulary import UNKNOWN

HELD_OUT, UNKNOWN_WORDS, RANDOM_PAIRS, SEED = 300, 500, 2000, 0
_NAME = re.compile(r"[A-Za-z]{5,20}")

Array = NDArray[np.floating]
Encode = Callable[[list[str]], Array]


def full_width(text: str) -> str:
    """Returns ASCII characters in their full-width forms; spaces stay."""
    return "".join(letter if letter == " " else chr(ord(letter) + 0xFEE0) for letter in text)


#: another way of writing, and the plain form
FORMS: Mapping[str, tuple[str, str]] = {
    "accents": ("Café résumé of a naïve señor", "Cafe resume of a naive senor"),
    "curly apostrophe": ("I don\u2019t know what he\u2019s doing", "I don't know what he's doing"),
    "modifier apostrophe": ("I don\u02bct know, it\u02bcs late", "I don't know, it's late"),
    "full-width": (full_width("The dog runs fast"), "The dog runs fast"),
    "zero-width": ("The d\u200bog runs in the pa\u200brk", "The dog runs in the park"),
    "upper case": ("THE DOG RUNS IN THE PARK", "the dog runs in the park"),
}


def held_out_sentences() -> dict[str, list[str]]:
    """Returns the held-out sentences of every source."""
    mixed = "english/sentences.tsv.xz"
    settings = CorpusSettings(
        mixed=f"{mixed}:source,text", counts=("*=1",), held_out=HELD_OUT, max_words=28
    )
    return read_corpus(settings, data_path(mixed).parents[1]).held_out


def share_without_entry(encoder: SentenceEncoder, sentences: Sequence[str]) -> float:
    """Returns the share of running words that have no entry of their own."""
    words = [word for text in sentences for word in encoder.text.words(text)]
    missing = sum(encoder.text.vocabulary.id(word) == UNKNOWN for word in words)
    return missing / max(1, len(words))


def unknown_words(encoder: SentenceEncoder, sentences: Iterable[str], count: int) -> list[str]:
    """Returns different words of the sentences that have no entry, drawn with a seed."""
    found = {
        word.lower()
        for text in sentences
        for word in encoder.text.words(text)
        if _NAME.fullmatch(word) and encoder.text.vocabulary.id(word) == UNKNOWN
    }
    order = np.random.default_rng(SEED).permutation(len(found))
    ordered = sorted(found)
    return [ordered[place] for place in order[:count]]


def mean_cosine(encode: Encode, texts: list[str]) -> float:
    """Returns the mean cosine of all pairs of different texts."""
    vectors = encode(texts).astype(np.float64)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    total = unit.sum(axis=0) @ unit.sum(axis=0) - (unit**2).sum()
    return float(total / (len(texts) * (len(texts) - 1)))


def mean_cosine_of_random_pairs(encode: Encode, sentences: Sequence[str]) -> float:
    """Returns the mean cosine of pairs of sentences drawn at random."""
    first, second = np.random.default_rng(SEED).integers(0, len(sentences), (2, RANDOM_PAIRS))
    differ = first != second
    sides = [[sentences[row] for row in rows[differ]] for rows in (first, second)]
    return float(cosine_pairs(encode(sides[0]), encode(sides[1])).mean())


def cosines_of_forms(encode: Encode) -> dict[str, float]:
    """Returns the cosine of every other way of writing with its plain form."""
    written, plain = ([pair[side] for pair in FORMS.values()] for side in (0, 1))
    cosines = cosine_pairs(encode(written), encode(plain))
    return {name: float(cosine) for name, cosine in zip(FORMS, cosines, strict=True)}

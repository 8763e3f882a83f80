"""Word vectors in GloVe's text format: a word and its values on each line, separated by spaces."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.files import decode_utf8, raw_lines
from genpool.errors import DataError
from genpool.text.tokenizer import canonical
from genpool.text.vocabulary import PAD, Vocabulary

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors, in the order of the file."""

    rows: dict[str, int]  # of each word, in `matrix`
    matrix: Floats  # (words, dim)

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return int(self.matrix.shape[1])

    def find(self, word: str, lower_case: bool = True) -> int | None:
        """Returns the row of a word as written, then (if `lower_case`) in lower case, or None."""
        row = self.rows.get(canonical(word))
        return self.rows.get(canonical(word).lower()) if row is None and lower_case else row


def read_vectors(path: str | Path, only: Container[str] | None = None) -> WordVectors:
    """Reads a vector file, plain or .gz, .bz2, .xz, .zip.

    The first line says how many values a word has. A word may contain spaces (GloVe 840B has some):
    the last fields are the values. A first line of two integers (word2vec's header) is skipped, and
    a word that occurs twice keeps its first vector. Words that are not in `only` are not read: a
    file of millions then takes little memory. DataError names the first line that is wrong.
    """
    rows: dict[str, int] = {}
    vectors: list[Floats] = []
    dim = 0
    for line, _, data in raw_lines(Path(path)):
        fields = decode_utf8(data, path, line).rstrip(" ").split(" ")
        if line == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            continue
        count = len(fields) - 1
        dim = dim or count
        if dim < 1:
            raise DataError("expected a word and its values, separated by spaces.", path, line)
        if count < dim:
            problem = f"{count} values after {fields[0][:40]!r}; expected {dim}."
            raise DataError(f"{problem} Is the file complete?", path, line)
        word = canonical(" ".join(fields[:-dim]))
        if word in rows or (only is not None and word not in only):
            continue
        try:
            with np.errstate(over="ignore"):  # what does not fit becomes infinite
                vector = np.array(fields[-dim:], dtype=np.float32)  # (dim,)
            if not np.isfinite(vector).all():
                raise ValueError("a value is not finite")
        except ValueError as error:
            problem = f"the vector of {word!r} is not {dim} numbers: {error}."
            raise DataError(problem, path, line) from None
        rows[word] = len(vectors)
        vectors.append(vector)
    if not dim:
        raise DataError("has no word vectors; expected a word and its values on each line.", path)
    matrix = np.stack(vectors) if vectors else np.empty((0, dim), dtype=np.float32)
    return WordVectors(rows, matrix)


@dataclass(frozen=True)
class Coverage:
    """How much of a vocabulary, special entries not counted, and of the text it was made from, has
    a vector; `exact_matches` were found as written, not in lower case."""

    words: int
    words_with_vector: int
    exact_matches: int
    tokens: int
    tokens_with_vector: int

    def __str__(self) -> str:
        lower_cased = self.words_with_vector - self.exact_matches
        return (
            f"vectors for {self.words_with_vector:,} of {self.words:,} words "
            f"({_percent(self.words_with_vector, self.words)}; {self.exact_matches:,} as written, "
            f"{lower_cased:,} in lower case) and "
            f"{_percent(self.tokens_with_vector, self.tokens)} of {self.tokens:,} tokens"
        )


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.1f} %" if total else "none"


def vector_table(
    vocabulary: Vocabulary,
    vectors: WordVectors,
    counts: Mapping[str, int],
    seed: int = 0,
    std: float = 0.01,
    lower_case_fallback: bool = True,
) -> tuple[Floats, Coverage]:
    """Returns the word table (vocabulary, dim) and how much of it the vectors cover.

    Words without a vector are Gaussian with deviation `std`, drawn with `seed`; PAD is zeros. With
    `lower_case_fallback`, a word that has no vector as written gets that of its lower-case form.
    `counts` is how often each word occurs in the text, for the coverage of tokens.
    """
    random = np.random.default_rng(seed)
    table = random.normal(0.0, std, (len(vocabulary), vectors.dim)).astype(np.float32)
    table[PAD] = 0
    exact_matches = 0
    covered = set()
    for word_id, word in enumerate(vocabulary.words[4:], start=4):
        if (row := vectors.find(word, lower_case_fallback)) is not None:
            table[word_id] = vectors.matrix[row]
            covered.add(word_id)
            exact_matches += word in vectors.rows
    tokens = sum(counts.values())
    with_vector = sum(count for word, count in counts.items() if vocabulary.id(word) in covered)
    coverage = Coverage(len(vocabulary) - 4, len(covered), exact_matches, tokens, with_vector)
    return table, coverage


def wanted_words(vocabulary: Vocabulary, lower_case_fallback: bool = True) -> set[str]:
    """Returns the words to read from a vector file: each entry as written, and in lower case if
    `vector_table` falls back to that."""
    words = set(vocabulary.words[4:])
    return words | {word.lower() for word in words} if lower_case_fallback else words

"""Word vectors in GloVe's text format: a word and its numbers on each line, split by spaces."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.files import SAVE_AS_UTF8, raw_lines
from genpool.errors import DataError, InputError
from genpool.text.tokenizer import canonical
from genpool.text.vocabulary import PAD, Vocabulary

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors (words, dim), in the order of the file."""

    places: dict[str, int]
    matrix: Floats

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def find(self, word: str) -> int | None:
        """The row of a word: exact match first, then lower case."""
        found = self.places.get(canonical(word))
        return self.places.get(canonical(word).lower()) if found is None else found


def read_vectors(
    path: str | Path, dim: int | None = None, only: Container[str] | None = None
) -> WordVectors:
    """Reads a vector file, plain or .gz, .bz2, .xz, .zip.

    Args:
        dim: the width that is expected; taken from the first line if not given.
        only: keep these words alone. A file of millions of words then costs little memory.

    A word may contain spaces (GloVe 840B has some): the last `dim` fields are the numbers. A first
    line with two whole numbers (word2vec's header) is passed over. A word that stands twice keeps
    its first vector.
    """
    places: dict[str, int] = {}
    vectors: list[Floats] = []
    width = dim or 0
    for number, word, fields, width in _lines(path, dim):
        word = canonical(word)
        if word in places or (only is not None and word not in only):
            continue
        places[word] = len(vectors)
        vectors.append(_numbers(fields, path, number, word, width))
    if not vectors and only is None:
        raise DataError("no word vectors in this file; expected a word and numbers a line.", path)
    matrix = np.stack(vectors) if vectors else np.empty((0, width), dtype=np.float32)
    return WordVectors(places, matrix)


def _lines(path: str | Path, dim: int | None) -> Iterator[tuple[int, str, list[str], int]]:
    """(line number, word, number fields, dim) of every line."""
    for number, _, data in raw_lines(Path(path)):
        try:
            fields = data.decode("utf-8").rstrip(" ").split(" ")
        except UnicodeDecodeError as error:
            raise DataError(
                f"is not UTF-8 text: {error.reason}; {SAVE_AS_UTF8}", path, number
            ) from None
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            continue
        found = len(fields) - 1
        if dim is None:
            dim = found
            if dim < 1:
                raise DataError("expected a word and its numbers, split by spaces.", path, number)
        if number <= 2 and found > dim and all(map(_is_number, fields[1:-dim])):
            problem = f"{found} numbers after {fields[0][:40]!r}; expected {dim}."
            raise DataError(f"{problem} The file has vectors of another width.", path, number)
        if found < dim:
            problem = f"{found} numbers after {fields[0][:40]!r}; expected {dim}."
            raise DataError(f"{problem} Is the file complete?", path, number)
        yield number, " ".join(fields[:-dim]), fields[-dim:], dim


def _numbers(fields: list[str], path: str | Path, line: int, word: str, dim: int) -> Floats:
    try:
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused below
            vector = np.array(fields, dtype=np.float32)
    except ValueError:
        bad = next(field for field in fields if not _is_number(field))
        raise DataError(
            f"{bad!r} is not a number, in the vector of {word!r} ({dim} numbers were expected).",
            path,
            line,
        ) from None
    if not np.isfinite(vector).all():
        raise DataError(f"the vector of {word!r} has a number that is not finite.", path, line)
    return vector


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Coverage:
    """How much of a vocabulary has a vector, by types (entries) and by running words."""

    types: int
    types_found: int
    exact: int
    running: int
    running_found: int

    def __str__(self) -> str:
        return (
            f"vectors for {self.types_found:,} of {self.types:,} words "
            f"({_percent(self.types_found, self.types)}; {self.exact:,} as written, the rest in "
            f"lower case) and {_percent(self.running_found, self.running)} of "
            f"{self.running:,} running words"
        )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def vector_table(
    vocabulary: Vocabulary,
    vectors: WordVectors,
    counts: Mapping[str, int],
    seed: int = 0,
    std: float = 0.01,
) -> tuple[Floats, Coverage]:
    """The word table (vocabulary, dim) and how much of it the vectors cover.

    Words without a vector are Gaussian with the given deviation; PAD is zeros. Special entries
    are not counted in the coverage.
    """
    if vectors.dim < 1:
        raise InputError("the vectors have no numbers; expected a width of 1 or more.")
    random = np.random.default_rng(seed)
    table = random.normal(0.0, std, (len(vocabulary), vectors.dim)).astype(np.float32)
    table[PAD] = 0
    types_found = exact = 0
    covered = set()
    for number, word in enumerate(vocabulary.words[4:], start=4):
        place = vectors.find(word)
        if place is None:
            continue
        table[number] = vectors.matrix[place]
        covered.add(number)
        types_found += 1
        exact += word in vectors.places
    running = sum(counts.values())
    running_found = sum(n for word, n in counts.items() if vocabulary.id(word) in covered)
    return table, Coverage(len(vocabulary) - 4, types_found, exact, running, running_found)


def wanted_words(vocabulary: Vocabulary) -> set[str]:
    """The words to ask a vector file for: each entry as it stands and in lower case."""
    return {form for word in vocabulary.words[4:] for form in (word, word.lower())}

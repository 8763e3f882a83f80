"""The folder of an index: how it is written, and what is checked before it is read.

    index.json       format, rows, dim, and the model (see index_card.py)
    vectors.npy      the vectors (rows, dim), float32
    sentences.utf8   the sentences, one after the other, with nothing in between
    offsets.npy      where each begins (rows + 1,), int64; the last number is the end of the file

Vectors and sentences are mapped into memory, not read; none of the files can hold a pickle.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.folders import atomic_folder, recover
from genpool.disk.growing_array import growing_array
from genpool.errors import FolderError, InputError
from genpool.search.index_card import CARD, IndexCard, ModelReference

VECTORS, SENTENCES, OFFSETS = "vectors.npy", "sentences.utf8", "offsets.npy"
OWN_FILES = (CARD, VECTORS, SENTENCES, OFFSETS)
FLOAT, INTEGER = "<f4", "<i8"
#: vectors count as normalized when their squared length is as near to 1 as this
UNIT = 1e-5

Vectors = NDArray[np.float32]
Write = Callable[[list[str], Vectors], None]


def is_folder_name(output: str | Path) -> bool:
    """Whether an output path means a folder: it ends in "/", or its name has no suffix."""
    # "-" is standard output elsewhere, and ".npy" a slip: neither is the name of a folder.
    named = Path(output).suffix == "" and not Path(output).name.startswith((".", "-"))
    return str(output).endswith(("/", os.sep)) or named


@contextmanager
def index_writer(output: str | Path, dim: int, model: ModelReference) -> Iterator[Write]:
    """Gives a function that adds sentences and their vectors; the index appears at the end."""
    rows, normalized = 0, True
    with atomic_folder(output, "the index", _check_replaced) as fresh:
        with (
            growing_array(fresh / VECTORS, FLOAT, (dim,)) as add_vectors,
            growing_array(fresh / OFFSETS, INTEGER) as add_ends,
            (fresh / SENTENCES).open("wb") as texts,
        ):
            add_ends(np.zeros(1, np.int64))

            def write(sentences: list[str], vectors: Vectors) -> None:
                nonlocal rows, normalized
                if vectors.shape != (len(sentences), dim):
                    raise InputError(
                        f"got vectors of shape {vectors.shape} for {len(sentences)} sentences; "
                        f"expected ({len(sentences)}, {dim})."
                    )
                _check_finite(vectors, rows)
                # JSON tables can hold half a surrogate pair, which strict UTF-8 has no bytes for.
                data = [sentence.encode("utf-8", "surrogatepass") for sentence in sentences]
                ends = list(accumulate(map(len, data), initial=texts.tell()))[1:]
                texts.write(b"".join(data))
                add_ends(np.array(ends, np.int64))
                add_vectors(vectors)
                squares = np.einsum("ij,ij->i", vectors, vectors)
                normalized &= bool(((squares == 0) | (abs(squares - 1) <= UNIT)).all())
                rows += len(sentences)

            yield write
        IndexCard(rows, dim, normalized, model).write(fresh)


def _check_finite(vectors: Vectors, before: int) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise InputError(
            f"the vector of row {before + int(bad[0])} is not finite; "
            "expected numbers: was the model damaged in training?"
        )


def _check_replaced(target: Path) -> None:
    """Only an earlier index may be written over."""
    foreign = sorted(each.name for each in target.iterdir() if each.name not in OWN_FILES)
    if foreign:
        raise FolderError(
            f"{target} holds something else, which the index would replace: "
            f"{', '.join(foreign[:5])}. Choose a new or empty folder."
        )
    IndexCard.read(target)


@dataclass(frozen=True)
class IndexFiles:
    """The checked files of an index, mapped into memory."""

    card: IndexCard
    vectors: Vectors  # (rows, dim)
    offsets: NDArray[np.int64]  # (rows + 1,)
    texts: NDArray[np.uint8]  # (bytes,)


def read_index(path: str | Path) -> IndexFiles:
    """Checks a folder against its card, and maps its files."""
    folder = Path(path)
    try:
        recover(folder.resolve())
        card = IndexCard.read(folder)
        missing = [name for name in OWN_FILES if not (folder / name).is_file()]
        if missing:
            raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.")
        vectors = _mapped(folder / VECTORS, FLOAT, (card.rows, card.dim))
        offsets = _mapped(folder / OFFSETS, INTEGER, (card.rows + 1,))
        size = (folder / SENTENCES).stat().st_size
        if (int(offsets[0]), int(offsets[-1])) != (0, size):
            raise FolderError(
                f"{folder / SENTENCES} has {size:,} bytes; {OFFSETS} says "
                f"{int(offsets[-1]):,}. Was a file cut off, or of another index?"
            )
        # What is empty cannot be mapped.
        texts = np.memmap(folder / SENTENCES, np.uint8, "r") if size else np.empty(0, np.uint8)
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error}") from error
    return IndexFiles(card, vectors, offsets, texts)


def _mapped(path: Path, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array on disk, once its head and the length of the file are what the card says."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            found, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
            begin = file.tell()
    except OSError:
        raise
    except Exception as error:  # NumPy passes on whatever its parser of the head raises
        raise FolderError(f"{path} is not an .npy file: {error}") from None
    if by_columns or found != shape or dtype != np.dtype(kind):
        raise FolderError(
            f"{path} holds {dtype} of shape {found}; {CARD} says {np.dtype(kind)} of {shape}."
        )
    expected = begin + math.prod(shape) * np.dtype(kind).itemsize
    if path.stat().st_size != expected:
        raise FolderError(
            f"{path} has {path.stat().st_size:,} bytes; expected {expected:,}. Was it cut off?"
        )
    array: NDArray[Any] = np.load(path, mmap_mode="r")
    return array

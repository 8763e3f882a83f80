"""The folder of an index: how it is written, and what is checked before it is read.

    index.json       format, rows, dim, and the model (see index_card.py)
    vectors.npy      the vectors (rows, dim), float32
    sentences.utf8   the sentences, one after the other, without separators
    offsets.npy      the start of each sentence in bytes (rows + 1,), int64; the last value is the
                     size of the file

Vectors and sentences are mapped into memory, not read; none of the files can contain a pickle.
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

from genpool.disk.atomic_folder import atomic_folder
from genpool.disk.folders import read_consistently
from genpool.disk.growing_array import growing_array
from genpool.errors import FolderError, InputError
from genpool.search.index_card import CARD, IndexCard, ModelReference

VECTORS, SENTENCES, OFFSETS = "vectors.npy", "sentences.utf8", "offsets.npy"
OWN_FILES = (CARD, VECTORS, SENTENCES, OFFSETS)
FLOAT, INTEGER = "<f4", "<i8"
#: vectors count as normalized if their squared length differs from 1 by no more than this
UNIT_TOLERANCE = 1e-5

Vectors = NDArray[np.float32]
Write = Callable[[list[str], Vectors], None]


def is_folder_name(output: str | Path) -> bool:
    """Returns whether an output path means a folder: it ends in "/", or its name has no suffix.

    Example:
        >>> is_folder_name("index"), is_folder_name("vectors.npy")
        (True, False)
    """
    # "-" is standard output elsewhere, and ".npy" a slip: neither is the name of a folder.
    plain = Path(output).suffix == "" and not Path(output).name.startswith((".", "-"))
    return str(output).endswith(("/", os.sep)) or plain


@contextmanager
def index_writer(output: str | Path, dim: int, model: ModelReference) -> Iterator[Write]:
    """Yields a function that adds sentences and their vectors; at the end the index appears.

    Args:
        output: the folder. An earlier index there is replaced when the new one is complete.
        dim: the dimension of the vectors.
        model: the model that they are made with.

    Yields:
        write(sentences, vectors), with a list of n sentences and float32 vectors (n, dim).

    Raises:
        InputError: vectors are of another shape, or not finite.
        FolderError: there is something other than an index at `output`, or it cannot be written.

    Example:
        >>> with index_writer("index", encoder.output_dim, ModelReference.of(encoder)) as write:
        ...     write(sentences, encoder.encode(sentences))
    """
    rows, normalized = 0, True
    with atomic_folder(output, "the index", _require_index) as fresh:
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
                require_finite(vectors, rows)
                # JSON tables can contain half a surrogate pair, which is not valid UTF-8.
                data = [sentence.encode("utf-8", "surrogatepass") for sentence in sentences]
                ends = list(accumulate(map(len, data), initial=texts.tell()))[1:]
                texts.write(b"".join(data))
                add_ends(np.array(ends, np.int64))
                add_vectors(vectors)
                squares = np.einsum("ij,ij->i", vectors, vectors)  # (n,)
                normalized &= bool(((squares == 0) | (abs(squares - 1) <= UNIT_TOLERANCE)).all())
                rows += len(sentences)

            yield write
        IndexCard(rows, dim, normalized, model).write(fresh)


def require_finite(vectors: Vectors, first_row: int) -> None:
    """Raises InputError with the first row of vectors (n, dim) that has NaN or infinity."""
    damaged = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(damaged):
        raise InputError(
            f"the vector of row {first_row + int(damaged[0])} is not finite; "
            "expected finite values: was the model damaged in training?"
        )


def _require_index(target: Path) -> None:
    """Only an earlier index may be replaced."""
    foreign = sorted(file.name for file in target.iterdir() if file.name not in OWN_FILES)
    if foreign:
        raise FolderError(
            f"{target} contains something else, which the index would replace: "
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
    """Checks a folder against its index.json, and maps its files.

    Raises:
        FolderError: the folder is missing, incomplete, damaged, or no index.
    """
    folder = Path(path)
    try:
        return read_consistently(folder, lambda: _map_files(folder))
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error}") from error


def _map_files(folder: Path) -> IndexFiles:
    card = IndexCard.read(folder)
    missing = [name for name in OWN_FILES if not (folder / name).is_file()]
    if missing:
        raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.")
    vectors = _map_array(folder / VECTORS, FLOAT, (card.rows, card.dim))
    offsets = _map_array(folder / OFFSETS, INTEGER, (card.rows + 1,))
    size = (folder / SENTENCES).stat().st_size
    if (int(offsets[0]), int(offsets[-1])) != (0, size):
        raise FolderError(
            f"{folder / SENTENCES} has {size:,} bytes; {OFFSETS} says "
            f"{int(offsets[-1]):,}. Was a file truncated, or is it of another index?"
        )
    # An empty file cannot be mapped.
    texts = np.memmap(folder / SENTENCES, np.uint8, "r") if size else np.empty(0, np.uint8)
    return IndexFiles(card, vectors, offsets, texts)


def _map_array(path: Path, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Maps an array if its header and the size of its file are what index.json says."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            stored_shape, by_columns, stored = np.lib.format.read_array_header_1_0(file)
            start = file.tell()
    except OSError:
        raise
    except Exception as error:  # NumPy passes on whatever its parser of the header raises
        raise FolderError(f"{path} is not an .npy file: {error}") from None
    if by_columns or stored_shape != shape or stored != np.dtype(dtype):
        raise FolderError(
            f"{path} contains {stored} of shape {stored_shape}; {CARD} says {np.dtype(dtype)} of "
            f"{shape}."
        )
    expected = start + math.prod(shape) * np.dtype(dtype).itemsize
    if path.stat().st_size != expected:
        raise FolderError(
            f"{path} has {path.stat().st_size:,} bytes; expected {expected:,}. Was it truncated?"
        )
    array: NDArray[Any] = np.load(path, mmap_mode="r")
    return array

"""FAISS: an index of vectors that `genpool encode` wrote (extra `faiss`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, require_extra
from genpool.search import SearchIndex
from genpool.tensors.arrays import unit_rows

__all__ = ["to_faiss", "write_faiss"]

BLOCK_ROWS = 20_000
#: rows that an index with parameters is trained on, at most
TRAINING_ROWS = 200_000


def to_faiss(source: str | Path, factory: str = "Flat") -> Any:
    """Returns a FAISS index of vectors, whose inner products are cosines; ids are row numbers.

    Args:
        source: a folder of `genpool encode -o FOLDER/`, or an .npy file (rows, dim).
        factory: the kind of index, as `faiss.index_factory` takes it: "Flat" (default),
            "HNSW32", "IVF1024,SQ8", ...

    Raises:
        MissingExtraError: FAISS is not installed.
        InputError: the file is not an array (rows, dim).
        FolderError: the folder is no index.

    Example:
        >>> index = to_faiss("index")
        >>> scores, rows = index.search(model.encode(["A dog."], normalize_embeddings=True), 3)
    """
    with require_extra("genpool.integrations.faiss", "faiss"):
        import faiss
    if Path(source).suffix == ".npy":
        vectors = np.load(source, mmap_mode="r")
    else:
        vectors = SearchIndex.open(source).vectors
    if vectors.ndim != 2:
        raise InputError(f"{source} has the shape {vectors.shape}; expected (rows, dim).")
    index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
    if not index.is_trained:
        count = min(TRAINING_ROWS, len(vectors))
        rows = np.random.default_rng(0).choice(len(vectors), count, replace=False)
        index.train(unit_rows(np.asarray(vectors[np.sort(rows)], np.float32)))
    for first in range(0, len(vectors), BLOCK_ROWS):
        block = np.asarray(vectors[first : first + BLOCK_ROWS], np.float32)
        index.add(unit_rows(block))
    return index


def write_faiss(source: str | Path, output: str | Path, factory: str = "Flat") -> int:
    """Writes a FAISS index of vectors to a file, for `faiss.read_index`; returns its rows.

    Args:
        source: as in `to_faiss`.
        output: the file; it is replaced when it is complete.
        factory: as in `to_faiss`.

    Raises:
        DataError: the file cannot be written. And what `to_faiss` raises.

    Example:
        >>> write_faiss("vectors.npy", "vectors.faiss", "HNSW32")
    """
    index = to_faiss(source, factory)
    import faiss

    with atomic_file(output) as temporary:
        faiss.write_index(index, str(temporary))
    return int(index.ntotal)

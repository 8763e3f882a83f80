"""FAISS (extra `faiss`): an index of any of its kinds, for programs that use FAISS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, require_extra
from genpool.search import SearchIndex
from genpool.search.approximate import TRAINING_ROWS, add_vectors, load_faiss

__all__ = ["to_faiss", "write_faiss"]


def to_faiss(source: str | Path, factory: str = "Flat") -> Any:
    """Returns a FAISS index of vectors, whose inner products are cosines; ids are row numbers.

    Args:
        source: a folder of `genpool encode -o FOLDER/`, or an .npy file (rows, dim).
        factory: the kind of index, as `faiss.index_factory` takes it: "Flat" (default),
            "HNSW32", "IVF1024,SQ8", ...

    Raises:
        MissingExtraError: FAISS is not installed.
        InputError: the source is not an array (rows, dim).
        FolderError: the folder is no index.

    Example:
        >>> index = to_faiss("index")
        >>> scores, rows = index.search(model.encode(["A dog."], normalize_embeddings=True), 3)
    """
    with require_extra("genpool.integrations.faiss", "faiss"):
        faiss = load_faiss()
    if Path(source).suffix == ".npy":
        vectors = np.load(source, mmap_mode="r")
    else:
        vectors = SearchIndex.open(source).vectors
    if vectors.ndim != 2:
        raise InputError(f"{source} has the shape {vectors.shape}; expected (rows, dim).")
    index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
    add_vectors(index, vectors, TRAINING_ROWS)
    return index


def write_faiss(source: str | Path, output: str | Path, factory: str = "Flat") -> int:
    """Writes the index of `to_faiss` to a file, for `faiss.read_index`; returns its rows.

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
    with atomic_file(output) as temporary:
        load_faiss().write_index(index, str(temporary))
    return int(index.ntotal)

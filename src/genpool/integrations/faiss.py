"""FAISS (extra `faiss`): an index of any of its kinds, for programs that use FAISS."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, require_extra
from genpool.search import SearchIndex
from genpool.search.approximate import TRAINING_ROWS, add_vectors, load_faiss

__all__ = ["write_faiss"]


def write_faiss(source: str | Path, output: str | Path, factory: str = "Flat") -> int:
    """Writes a FAISS index of vectors to a file, for `faiss.read_index`; returns its rows.

    Inner products of the index are cosines; its ids are row numbers.

    Args:
        source: a folder of `genpool encode -o FOLDER/`, or an .npy file (rows, dim).
        output: the file; it is replaced when it is complete.
        factory: the kind of index, as `faiss.index_factory` takes it: "Flat" (default),
            "HNSW32", "IVF1024,SQ8", ...

    Raises:
        MissingExtraError: FAISS is not installed.
        InputError: the source is not an array (rows, dim).
        FolderError: the folder is no index.
        DataError: the file cannot be written.

    Example:
        >>> write_faiss("vectors.npy", "vectors.faiss", "HNSW32")
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
    with atomic_file(output) as temporary:
        faiss.write_index(index, str(temporary))
    return int(index.ntotal)

"""The lists of a large index, by which a search reads a part of its rows (extra `faiss`).

A large folder has lists of similar rows (IVF, SQ8), so that a search reads a few of them:

    centroids.npy     the centre of each list (lists, dim), float32
    list_sizes.npy    the number of rows of each list (lists,), int64
    code_ranges.npy   smallest value and width of each dimension, for 8-bit codes (2 * dim,)
    lists.bin         list by list: the codes of its rows (size, dim), uint8, then their row
                      numbers (size,), int64

FAISS reads them from the mapped file. Its own file format is not used: what is here are plain
arrays, whose sizes are checked before FAISS sees them.
"""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.arrays import map_array
from genpool.errors import FolderError
from genpool.search.index_card import CARD, CENTROIDS, LISTS, RANGES, SIZES, IndexCard
from genpool.search.nearest import Candidates, Rows, Vectors
from genpool.tensors.arrays import unit_rows

BLOCK_ROWS = 20_000
#: rows that the parameters of an index are computed from, at most; and for each list
TRAINING_ROWS, TRAINING_ROWS_PER_LIST = 200_000, 64
#: lists that are read for a query, and rows whose cosine is computed exactly, for each hit
PROBES, CANDIDATES_PER_HIT = 64, 4
ID_BYTES = 8


def load_faiss() -> Any:
    """Returns the module of FAISS; ModuleNotFoundError where it is not installed."""
    return import_module("faiss")  # as Any: its types lack much of it


def add_vectors(index: Any, vectors: NDArray[Any], training_rows: int) -> None:
    """Adds vectors (rows, dim) of any length, after training on some if the index needs that."""
    if not index.is_trained:
        count = min(training_rows, len(vectors))
        rows = np.random.default_rng(0).choice(len(vectors), count, replace=False)
        index.train(unit_rows(np.asarray(vectors[np.sort(rows)], np.float32)))
    for first in range(0, len(vectors), BLOCK_ROWS):
        index.add(unit_rows(np.asarray(vectors[first : first + BLOCK_ROWS], np.float32)))


def has_faiss() -> bool:
    """Returns whether FAISS is installed, and can map lists (it cannot on Windows)."""
    try:
        return hasattr(load_faiss(), "OnDiskInvertedLists")
    except ModuleNotFoundError:
        return False


def write_lists(folder: Path, vectors: Vectors) -> int:
    """Divides the vectors (rows, dim) of an index into lists, whose number it returns."""
    faiss, (rows, dim) = load_faiss(), vectors.shape
    count = max(1, round(math.sqrt(rows)))
    index = faiss.index_factory(dim, f"IVF{count},SQ8", faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = 1  # no warning for small indexes
    add_vectors(index, vectors, TRAINING_ROWS_PER_LIST * count)
    stored = index.invlists
    sizes = np.array([stored.list_size(place) for place in range(count)], np.int64)
    with (folder / LISTS).open("wb") as file:
        for place, size in enumerate(sizes.tolist()):
            if size:  # the pointers of an empty list are not valid
                file.write(faiss.rev_swig_ptr(stored.get_codes(place), size * dim).data)
                file.write(faiss.rev_swig_ptr(stored.get_ids(place), size).data)
    np.save(folder / SIZES, sizes)
    np.save(folder / CENTROIDS, index.quantizer.reconstruct_n(0, count))
    np.save(folder / RANGES, faiss.vector_to_array(index.sq.trained))
    return count


def map_lists(folder: Path, card: IndexCard) -> Candidates | None:
    """Checks the lists of an index and returns a function that finds rows which may be best for
    queries, in their order; None if FAISS is not there to read them."""
    lists, rows, dim = card.lists, card.rows, card.dim
    centroids = map_array(folder / CENTROIDS, "<f4", (lists, dim), CARD)
    sizes = map_array(folder / SIZES, "<i8", (lists,), CARD)
    ranges = map_array(folder / RANGES, "<f4", (2 * dim,), CARD)
    bytes_ = (folder / LISTS).stat().st_size
    if bytes_ != rows * (dim + ID_BYTES) or sizes.min() < 0 or sizes.sum(dtype=object) != rows:
        raise FolderError(
            f"{folder / LISTS} has {bytes_:,} bytes in {sizes.sum(dtype=object):,} rows; "
            f"expected {rows * (dim + ID_BYTES):,} bytes, {rows:,} rows. Was it truncated?"
        )
    if not (np.isfinite(centroids).all() and np.isfinite(ranges).all()):
        raise FolderError(f"{folder / CENTROIDS} or {RANGES} contains NaN or infinity.")
    if not has_faiss():
        return None
    faiss = load_faiss()
    quantizer = faiss.IndexFlatIP(dim)
    quantizer.add(np.ascontiguousarray(centroids))
    kind, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexIVFScalarQuantizer(quantizer, dim, lists, kind, metric)
    faiss.copy_array_to_vector(np.ascontiguousarray(ranges), index.sq.trained)
    stored = faiss.OnDiskInvertedLists()
    stored.nlist, stored.code_size, stored.read_only = lists, dim, True
    stored.filename, stored.totsize = str(folder / LISTS), bytes_
    stored.lists.resize(lists)
    places = np.ascontiguousarray(sizes, np.uint64)
    stored.set_all_lists_sizes(faiss.swig_ptr(places))
    stored.do_mmap()
    index.replace_invlists(stored, True)
    stored.this.disown()  # it is the index's own now
    index.is_trained, index.ntotal = True, rows

    def candidates(queries: Vectors, top: int) -> list[Rows]:
        parameters = faiss.SearchParametersIVF(nprobe=PROBES)
        found = index.search(queries, top * CANDIDATES_PER_HIT, params=parameters)[1]  # -1: none
        if found.size and not -1 <= found.min() <= found.max() < rows:
            raise FolderError(f"{LISTS} is damaged: it names rows that do not exist.")
        return [np.unique(numbers[numbers >= 0]) for numbers in found]

    return candidates

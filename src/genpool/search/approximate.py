"""Lists of similar rows, so that a search of a large index reads a few of them: FAISS (IVF, SQ8).

    centroids.npy     the centre of each list (lists, dim), float32
    list_sizes.npy    the number of rows of each list (lists,), int64
    code_ranges.npy   smallest value and width of each dimension, for 8-bit codes (2 * dim,)
    lists.bin         list by list: the codes of its rows (size, dim), uint8, then their row
                      numbers (size,), int64

FAISS reads the lists from the mapped file. Its own file format is not used: what is here are plain
arrays, whose sizes are checked before FAISS sees them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.arrays import map_array
from genpool.errors import FolderError
from genpool.search.index_card import CARD, IndexCard
from genpool.tensors.arrays import unit_rows

LISTS, SIZES, CENTROIDS, RANGES = "lists.bin", "list_sizes.npy", "centroids.npy", "code_ranges.npy"
LIST_FILES = (LISTS, SIZES, CENTROIDS, RANGES)
#: rows from which on `genpool encode` makes lists, if FAISS is installed
MIN_ROWS = 1_000_000
#: rows per list that the centres are computed from
TRAINING_ROWS = 64
#: lists that are read for a query, and rows whose cosine is computed exactly, for each hit
PROBES, CANDIDATES_PER_HIT = 64, 4
BLOCK_ROWS = 20_000
ID_BYTES = 8

Vectors = NDArray[np.float32]


def has_faiss() -> bool:
    """Returns whether FAISS is installed, and can map lists (it cannot on Windows)."""
    try:
        return hasattr(_faiss(), "OnDiskInvertedLists")
    except ModuleNotFoundError:
        return False


def _faiss() -> Any:
    # Its types lack what is used here.
    return import_module("faiss")


def write_lists(folder: Path, vectors: Vectors) -> int:
    """Divides the vectors (rows, dim) of an index into lists, whose number it returns."""
    faiss = _faiss()
    rows, dim = vectors.shape
    count = max(1, round(math.sqrt(rows)))
    index = faiss.index_factory(dim, f"IVF{count},SQ8", faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = 1  # no warning for small indexes
    sample = np.random.default_rng(0).choice(rows, min(rows, TRAINING_ROWS * count), replace=False)
    index.train(unit_rows(vectors[np.sort(sample)]))
    for first in range(0, rows, BLOCK_ROWS):
        index.add(unit_rows(np.asarray(vectors[first : first + BLOCK_ROWS])))
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


@dataclass(frozen=True)
class ListFiles:
    """The lists of an index, open in FAISS."""

    rows: int
    index: Any
    parts: tuple[Any, ...]  # what FAISS points to and does not own

    @classmethod
    def map(cls, folder: Path, card: IndexCard) -> ListFiles | None:
        """Checks the lists of an index and maps them; None if FAISS is not there to read them."""
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
        faiss = _faiss()
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
        index.replace_invlists(stored)
        index.is_trained, index.ntotal = True, rows
        return cls(rows, index, (quantizer, stored))

    def candidates(self, queries: Vectors, count: int) -> list[NDArray[np.int64]]:
        """Returns for each query (n, dim) up to `count` rows that may be best, in their order."""
        faiss = _faiss()
        parameters = faiss.SearchParametersIVF(nprobe=PROBES)
        found = self.index.search(queries, count, params=parameters)[1]  # (n, count), -1 for none
        if found.size and not -1 <= found.min() <= found.max() < self.rows:
            raise FolderError(f"{LISTS} is damaged: it names rows that do not exist.")
        return [np.unique(rows[rows >= 0]) for rows in found]

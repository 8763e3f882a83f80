"""The rows nearest to a query: those that loops find, whatever the blocks."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from genpool.errors import FolderError, InputError
from genpool.search import ModelReference, SearchIndex, index_writer, nearest
from tests.helpers.small_indexes import by_loops, random_vectors, write_index

ROWS, DIM = 101, 6
#: one row a block, blocks that do not divide the rows, blocks above `top`
BLOCKS = (1, 7, 1000)
Open = Callable[..., SearchIndex]


def unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


@pytest.fixture
def open_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    def write_and_open(vectors: np.ndarray, block_rows: int | None = None) -> SearchIndex:
        if block_rows is not None:
            monkeypatch.setattr(nearest, "BLOCK_BYTES", block_rows * 4 * vectors.shape[1])
        return SearchIndex.open(write_index(tmp_path / "index", vectors))

    return write_and_open


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("block_rows", BLOCKS)
def test_the_hits_are_those_that_loops_find(
    open_index: Open, block_rows: int, normalized: bool
) -> None:
    vectors = random_vectors(ROWS, DIM) * np.linspace(0.1, 30, ROWS, dtype=np.float32)[:, None]
    vectors = unit(vectors) if normalized else vectors
    index = open_index(vectors, block_rows)
    assert index.card.normalized is normalized
    queries = random_vectors(5, DIM, seed=1)
    for top in (1, 10, ROWS):
        for query, hits in zip(queries, index.search(queries, top), strict=True):
            expected = by_loops(vectors, query, top)
            assert [hit.row for hit in hits] == [row for row, _ in expected]
            assert [hit.score for hit in hits] == pytest.approx([s for _, s in expected], abs=1e-12)
            assert [hit.sentence for hit in hits] == [f"row {row}" for row, _ in expected]


@pytest.mark.parametrize("block_rows", BLOCKS)
@pytest.mark.parametrize("dim", [1, 17, 300])
def test_equal_rows_come_in_their_order(open_index: Open, block_rows: int, dim: int) -> None:
    """Also where a matrix product would add their products in another order."""
    three = random_vectors(3, dim)
    choice = np.random.default_rng(1).integers(0, 3, ROWS)
    index = open_index(three[choice], block_rows)
    [hits] = index.search(three[1] + 0.1 * three[0], top=60)
    expected = by_loops(three[choice], three[1] + 0.1 * three[0], 60)
    assert [hit.row for hit in hits] == [row for row, _ in expected]


@pytest.mark.parametrize("block_rows", [1, 2, 100])
def test_one_direction_ties_at_any_length_and_zeros_have_cosine_zero(
    open_index: Open, block_rows: int
) -> None:
    vectors = np.array([[2, 2], [1, 0], [8, 8], [1, 1], [0.5, 0.5]], np.float32)
    [hits] = open_index(vectors, block_rows).search([1.0, 1.0], top=4)
    assert [hit.row for hit in hits] == [0, 2, 3, 4]
    assert len({hit.score for hit in hits}) == 1
    vectors = np.array([[0, 0], [-1, 0], [0, 0], [1, 0], [0, 2]], np.float32)
    index = open_index(vectors, block_rows)
    along, nothing = index.search(np.array([[3.0, 0.0], [0.0, 0.0]]), top=5)
    assert [(hit.row, hit.score) for hit in along] == [(3, 1), (0, 0), (2, 0), (4, 0), (1, -1)]
    assert [(hit.row, hit.score) for hit in nothing] == [(row, 0) for row in range(5)]


@pytest.mark.parametrize("scale", [1e-42, 1e-15, 1e30, 3e37])
def test_tiny_and_huge_vectors_have_their_cosine(open_index: Open, scale: float) -> None:
    vectors = random_vectors(40, DIM)
    vectors[::3] *= np.float32(scale)
    index = open_index(vectors, 9)
    query = random_vectors(DIM, seed=1).astype(np.float64)
    [hits] = index.search(query * 1e-200, top=12)
    expected = by_loops(vectors, query, 12)
    assert [hit.row for hit in hits] == [row for row, _ in expected]
    assert [hit.score for hit in hits] == pytest.approx([s for _, s in expected], abs=1e-6)


def test_rows_that_differ_by_less_than_32_bits_show_are_ranked_right(open_index: Open) -> None:
    """Cosines that differ by 1e-8, at angles where the error of a product in 32 bits is larger."""
    angles = np.linspace(0.1, 0.1 + 1e-6, 60)
    flat = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    vectors = np.repeat(flat, 50, axis=1) * np.float32(0.1)
    query = np.repeat([1.0, 0.0], 50)
    index = open_index(vectors, 13)
    [hits] = index.search(query, top=20)
    assert [hit.row for hit in hits] == [row for row, _ in by_loops(vectors, query, 20)]


def test_many_queries_are_answered_in_their_order_and_few_rows_are_all_hits(
    open_index: Open,
) -> None:
    vectors, queries = random_vectors(50, 4), random_vectors(150, 4, seed=2)  # of several passes
    index = open_index(vectors, 20)
    together = index.search(queries, top=3)
    assert len(together) == 150
    assert together == [index.search(query, top=3)[0] for query in queries]
    assert index.search(np.zeros((0, 4))) == []
    [hits] = index.search(queries[0], top=10**9)
    assert sorted(hit.row for hit in hits) == list(range(50))
    index = open_index(np.zeros((0, 4), np.float32))
    assert len(index) == 0
    assert index.search(np.ones((2, 4))) == [[], []]


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (np.ones((1, 3)), r"shape \(1, 3\).*expected \(n, 4\)"),
        (np.ones(5), r"shape \(5,\)"),
        (np.ones((1, 1, 4)), r"shape \(1, 1, 4\)"),
        (np.array(["a", "b", "c", "d"]), "<U1"),
        (np.array([1, np.nan, 0, 0]), "NaN or infinity"),
        (np.array([1, np.inf, 0, 0]), "NaN or infinity"),
    ],
)
def test_queries_that_do_not_fit_are_refused(
    open_index: Open, queries: np.ndarray, message: str
) -> None:
    index = open_index(random_vectors(3, 4))
    with pytest.raises(InputError, match=message):
        index.search(queries)
    for top in (0, -1, True):
        with pytest.raises(InputError, match="expected 1 or more"):
            index.search(np.ones(4), top=top)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("normalized", [False, True])
def test_a_damaged_vector_is_reported_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: float, normalized: bool
) -> None:
    vectors = unit(random_vectors(30, 4)) if normalized else random_vectors(30, 4)
    folder = write_index(tmp_path / "index", vectors)
    on_disk = np.load(folder / "vectors.npy", mmap_mode="r+")
    on_disk[17, 2] = bad
    on_disk.flush()
    monkeypatch.setattr(nearest, "BLOCK_BYTES", 8 * 4 * 4)
    index = SearchIndex.open(folder)
    with pytest.raises(FolderError, match="is damaged: the vector of row 17 contains NaN or inf"):
        index.search(np.ones(4), top=2)


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    vectors = random_vectors(200_000, 64)  # 51 MB
    folder = write_index(tmp_path / "index", vectors, chunk=20_000)
    query = random_vectors(64, seed=1)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    tracemalloc.start()
    [hits] = SearchIndex.open(folder).search(query)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [hit.row for hit in hits] == np.argsort(-cosines)[:10].tolist()
    assert peak < 4e6


def test_writing_holds_one_chunk_at_a_time(tmp_path: Path) -> None:
    chunk = random_vectors(1000, 64)
    texts = ["a sentence of some words"] * 1000
    tracemalloc.start()
    with index_writer(tmp_path / "index", 64, ModelReference("x")) as write:
        for _ in range(50):
            write(texts, chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(SearchIndex.open(tmp_path / "index")) == 50_000
    assert peak < 1e6  # the vectors are 12.8 MB, the sentences 1.2 MB

"""Lists of similar rows: a search of a few of them finds what a search of all rows finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genpool.errors import FolderError, InputError, MissingExtraError
from genpool.search import SearchIndex, approximate, build_lists, delete_rows, index_folder
from genpool.search.index_card import LIST_FILES
from tests.helpers.small_indexes import by_loops, random_vectors, write_index

pytest.importorskip("faiss", reason="faiss-cpu is not installed (extra faiss)")
DIM = 8


def clusters(rows: int, groups: int = 12) -> np.ndarray:
    """Vectors near a few directions, as sentences of a few topics are, of different lengths."""
    centres = random_vectors(groups, DIM)
    members = np.random.default_rng(1).integers(0, groups, rows)
    lengths = np.linspace(0.1, 30, rows, dtype=np.float32)[:, None]
    return (centres[members] + 0.3 * random_vectors(rows, DIM, seed=2)) * lengths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index of 600 rows with lists."""
    build_lists(write_index(tmp_path / "index", clusters(600)))
    return tmp_path / "index"


def test_a_search_of_lists_finds_the_rows_that_loops_find(folder: Path) -> None:
    index = SearchIndex.open(folder)
    assert build_lists(folder) == index.card.lists == 24  # the square root of 600
    vectors, queries = clusters(600), clusters(30)
    found = index.search(queries, top=5)
    assert found == index.search(queries, top=5, exact=True)  # 24 lists are all read
    for query, hits in zip(queries, found, strict=True):
        expected = by_loops(vectors, query, 5)
        assert [hit.row for hit in hits] == [row for row, _ in expected]
        assert [hit.score for hit in hits] == pytest.approx([s for _, s in expected], abs=1e-6)


def test_only_the_lists_that_are_read_are_searched(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, queries = SearchIndex.open(folder), random_vectors(40, DIM, seed=5)
    monkeypatch.setattr(approximate, "PROBES", 1)
    few = [[hit.row for hit in hits] for hits in index.search(queries, top=10)]
    every = [[hit.row for hit in hits] for hits in index.search(queries, top=10, exact=True)]
    assert few != every  # so `exact` does something
    assert all(len(rows) == 10 for rows in few)
    shared = sum(len(set(a) & set(b)) for a, b in zip(few, every, strict=True))
    assert 0.3 < shared / 400 < 1
    # More hits than the lists have are found among all rows.
    query = queries[0]
    assert index.search(query, top=590) == index.search(query, top=590, exact=True)
    assert len(index.search(query, top=10_000)[0]) == 600


def test_a_condition_is_answered_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clusters(300)
    values = [(row,) for row in range(300)]
    build_lists(write_index(tmp_path / "index", vectors, columns=["n"], values=values))
    monkeypatch.setattr(approximate, "PROBES", 1)
    query = random_vectors(DIM, seed=5)
    [hits] = SearchIndex.open(tmp_path / "index").search(query, top=9, where="n < 40")
    assert [hit.row for hit in hits] == [row for row, _ in by_loops(vectors[:40], query, 9)]


def test_a_changed_index_keeps_lists_of_its_rows(tmp_path: Path) -> None:
    vectors = clusters(300)
    folder = tmp_path / "index"
    for rows in (range(200), range(200, 300)):
        values = [(row,) for row in rows]
        write_index(folder, vectors[rows], columns=["n"], values=values, append=True)
        if rows.start == 0:
            build_lists(folder)
    assert SearchIndex.open(folder).card.lists == 17
    delete_rows(folder, range(100))
    index = SearchIndex.open(folder)
    assert (len(index), index.card.lists) == (200, 14)
    [hits] = index.search(vectors[250], top=3)
    assert [hit.row for hit in hits] == [row for row, _ in by_loops(vectors[100:], vectors[250], 3)]
    assert hits[0].values == {"n": 250}


def test_large_indexes_get_lists_when_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_folder, "MIN_ROWS", 100)
    assert SearchIndex.open(write_index(tmp_path / "a", clusters(99))).card.lists == 0
    assert SearchIndex.open(write_index(tmp_path / "b", clusters(100))).card.lists == 10
    monkeypatch.setattr(approximate, "has_faiss", lambda: False)
    plain = SearchIndex.open(write_index(tmp_path / "c", clusters(100)))
    assert plain.card.lists == 0
    with pytest.raises(MissingExtraError, match=r"genpool\[faiss\]"):
        build_lists(tmp_path / "c")
    monkeypatch.undo()
    with pytest.raises(InputError, match="is empty"):
        build_lists(write_index(tmp_path / "d", np.zeros((0, DIM), np.float32)))


def test_without_faiss_the_search_is_exact_and_an_open_index_goes_on_with_its_own_lists(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, query = SearchIndex.open(folder), random_vectors(DIM, seed=5)
    before, expected = index.search(query), index.search(query, exact=True)
    monkeypatch.setattr(approximate, "has_faiss", lambda: False)
    assert SearchIndex.open(folder).search(query) == expected
    monkeypatch.undo()
    write_index(folder, clusters(3))
    assert index.search(query) == before


@pytest.mark.parametrize("name", LIST_FILES)
def test_a_file_that_is_missing_or_truncated_is_reported(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1])
    with pytest.raises(FolderError, match=name):
        SearchIndex.open(folder)
    (folder / name).unlink()
    with pytest.raises(FolderError, match=f"is incomplete: {name} missing"):
        SearchIndex.open(folder)


def test_arrays_that_do_not_fit_never_reach_faiss(folder: Path) -> None:
    sizes = np.load(folder / "list_sizes.npy")
    for changes in ({0: sizes[0] + 1}, {0: -1, 1: sizes[0] + sizes[1] + 1}, {0: 2**62, 1: 2**62}):
        wrong = sizes.copy()
        for place, value in changes.items():
            wrong[place] = value
        np.save(folder / "list_sizes.npy", wrong)
        with pytest.raises(FolderError, match=r"lists\.bin has .* expected"):
            SearchIndex.open(folder)
    np.save(folder / "list_sizes.npy", sizes)
    centroids = np.load(folder / "centroids.npy")
    centroids[3, 2] = np.nan
    np.save(folder / "centroids.npy", centroids)
    with pytest.raises(FolderError, match="NaN or infinity"):
        SearchIndex.open(folder)


@pytest.mark.parametrize("number", [600, -2, 2**62])
def test_row_numbers_that_do_not_exist_are_reported(folder: Path, number: int) -> None:
    sizes = np.load(folder / "list_sizes.npy")
    data = bytearray((folder / "lists.bin").read_bytes())
    start = 0
    for size in sizes.tolist():
        ids = start + size * DIM
        data[ids : ids + 8 * size] = np.full(size, number, np.int64).tobytes()
        start = ids + 8 * size
    (folder / "lists.bin").write_bytes(bytes(data))
    with pytest.raises(FolderError, match="names rows that do not exist"):
        SearchIndex.open(folder).search(random_vectors(DIM, seed=5), top=3)

"""Rows of texts on disk: nothing is computed twice, nothing is lost."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from genpool.disk import row_cache
from genpool.disk.row_cache import CARD, INDEX, RECORD, ROWS, RowCache
from genpool.errors import DataError, FolderError

TEXTS = ["one", "", "three words here", "not two \ud800"]


def rows_of(text: str) -> np.ndarray:
    """As many rows as words, (words, 1, 3)."""
    words = text.split()
    return np.array([[[len(word), sum(map(ord, word)) % 7, 1.0]] for word in words]).reshape(
        -1, 1, 3
    )


def append(cache: RowCache, texts: list[str]) -> RowCache:
    cache.append(texts, [rows_of(text) for text in texts])
    return cache


def new(folder: Path) -> RowCache:
    return RowCache(folder, "a model", (1, 3))


def assert_rows(cache: RowCache, texts: list[str]) -> None:
    everything = cache.rows()
    for text, (start, count) in zip(texts, cache.places(texts), strict=True):
        np.testing.assert_array_equal(everything[start : start + count], rows_of(text))


def test_rows_are_found_by_text_in_any_order_and_mapped(tmp_path: Path) -> None:
    append(append(new(tmp_path), TEXTS), ["four"])
    again = RowCache.open(tmp_path, "a model")
    assert again is not None and again.row_shape == (1, 3)
    assert_rows(again, ["four", *reversed(TEXTS), "four"])
    assert isinstance(again.rows(), np.memmap) and again.rows().dtype == np.float16
    assert again.missing(["five", "one", "five", "six"]) == ["five", "six"]
    assert again.size_bytes == 8 * 3 * 2  # eight words


def test_a_text_may_have_one_row_given_without_its_dimension(tmp_path: Path) -> None:
    cache = RowCache(tmp_path, "a teacher", (2,))
    vectors = np.array([[1, 2], [3, 4]])
    cache.append(["a", "b"], vectors)
    np.testing.assert_array_equal(cache.rows()[cache.places(["b", "a"])[:, 0]], vectors[::-1])


def test_there_are_no_rows_yet(tmp_path: Path) -> None:
    assert RowCache.open(tmp_path / "nowhere", "a model") is None
    cache = append(new(tmp_path / "new"), [""])
    assert cache.rows().shape == (0, 1, 3) and cache.missing(["", "a"]) == ["a"]
    assert cache.places([]).shape == (0, 2) and cache.size_bytes == 0


@pytest.mark.parametrize(("lost_records", "torn_bytes"), [(1, 0), (1, 5), (3, RECORD.itemsize - 1)])
def test_a_run_that_was_stopped_continues(
    tmp_path: Path, lost_records: int, torn_bytes: int
) -> None:
    """The index lacks its last records, and ends within one; the rows are longer than it says."""
    append(new(tmp_path), TEXTS)
    index = tmp_path / INDEX
    end = (len(TEXTS) - lost_records) * RECORD.itemsize + torn_bytes
    index.write_bytes(index.read_bytes()[:end])
    with (tmp_path / ROWS).open("ab") as file:
        file.write(b"half a row")
    cache = new(tmp_path)
    assert cache.missing(TEXTS) == TEXTS[-lost_records:]
    append(cache, TEXTS[-lost_records:])
    for reader in (cache, new(tmp_path)):
        assert_rows(reader, TEXTS)
    assert (tmp_path / ROWS).stat().st_size == cache.size_bytes


@pytest.mark.parametrize("file", [ROWS, INDEX])
def test_a_full_disk_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    cache = append(new(tmp_path), ["one", "two"])
    write_at = row_cache._write_at

    def full(path: Path, position: int, content: bytes) -> None:
        if path.name != file:
            write_at(path, position, content)
            return
        write_at(path, position, content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(row_cache, "_write_at", full)
        with pytest.raises(FolderError, match=r"No space left.*is kept; make room.*same command"):
            append(cache, ["three"])
    again = new(tmp_path)
    assert again.missing(["one", "two", "three"]) == ["three"]
    assert_rows(append(again, ["three"]), ["one", "two", "three"])


def test_two_writers_do_not_disturb_each_other(tmp_path: Path) -> None:
    first, second = new(tmp_path), new(tmp_path)
    append(first, ["one", "two"])
    append(second, ["two", "and three"])  # it did not know of "two"
    assert_rows(second, ["and three", "two", "one"])
    append(first, ["four"])
    assert_rows(first, ["four", "and three", "two", "one"])


def test_rows_that_were_cut_are_noticed(tmp_path: Path) -> None:
    append(new(tmp_path), TEXTS)
    (tmp_path / ROWS).write_bytes(b"")
    with pytest.raises(FolderError, match=r"Remove the folder"):
        new(tmp_path)


def test_the_rows_of_another_model_and_damaged_cards_are_refused(tmp_path: Path) -> None:
    new(tmp_path)
    with pytest.raises(FolderError, match=r"'a model'.*expected.*'another'.*another folder"):
        RowCache(tmp_path, "another", (1, 3))
    card = json.loads((tmp_path / CARD).read_text())
    for content, problem in [
        ({**card, "row_shape": [1, 7]}, "another folder"),
        ({**card, "format_version": 9}, "version 9"),
        ([], "contains list; expected named entries"),
    ]:
        (tmp_path / CARD).write_text(json.dumps(content))
        with pytest.raises(FolderError, match=problem):
            new(tmp_path)
    (tmp_path / CARD).write_text("{")
    with pytest.raises(FolderError, match="not JSON"):
        new(tmp_path)
    (tmp_path / CARD).write_text(json.dumps({**card, "row_shape": "3"}))
    with pytest.raises(FolderError, match="row_shape is '3'"):
        RowCache.open(tmp_path, "a model")


def test_a_place_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="cannot be used as a cache"):
        new(tmp_path / "file" / "below")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e9])
def test_rows_that_are_not_finite_are_refused_and_the_others_kept(
    tmp_path: Path, bad: float
) -> None:
    cache = append(new(tmp_path), ["one"])
    with pytest.raises(DataError, match=r"NaN or infinity for 'three'.*are kept"):
        cache.append(["two", "three"], [rows_of("two"), rows_of("three") * bad])
    assert new(tmp_path).missing(["one", "two"]) == ["two"]
    with pytest.raises(DataError, match=r"an array \(1, 2\) for 'two'; expected .* \(1, 3\)"):
        cache.append(["two"], [np.ones((1, 2))])

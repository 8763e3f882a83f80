"""Vectors of sentences on disk: nothing is computed twice, nothing is lost."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from genpool.distillation import vector_cache
from genpool.distillation.vector_cache import ABOUT, KEYS, VECTORS, VectorCache
from genpool.errors import DataError


def vectors_of(sentences: list[str]) -> np.ndarray:
    return np.array([[len(text), sum(map(ord, text)) % 7, 1.0] for text in sentences])


def filled(folder: Path, sentences: list[str]) -> VectorCache:
    cache = VectorCache(folder, "a teacher", 3)
    cache.append(sentences, vectors_of(sentences))
    return cache


def test_vectors_are_found_by_sentence_in_any_order(tmp_path: Path) -> None:
    cache = filled(tmp_path, ["one", "two", "three"])
    cache.append(["four"], vectors_of(["four"]))
    again = VectorCache.open(tmp_path, "a teacher")
    assert again is not None and len(again) == 4
    wanted = ["four", "one", "three", "one"]
    assert np.array_equal(again.vectors()[again.rows_of(wanted)], vectors_of(wanted))
    assert again.vectors().dtype == np.float16
    assert again.missing(["five", "two", "five", "six"]) == ["five", "six"]


def test_there_are_no_vectors_yet(tmp_path: Path) -> None:
    assert VectorCache.open(tmp_path / "nowhere", "a teacher") is None
    cache = VectorCache(tmp_path / "new", "a teacher", 3)
    assert cache.vectors().shape == (0, 3) and cache.missing(["a"]) == ["a"]


@pytest.mark.parametrize("name", [KEYS, VECTORS])
def test_an_incomplete_last_row_is_cut_off(tmp_path: Path, name: str) -> None:
    filled(tmp_path, ["one", "two", "three"])
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-1])  # as after kill -9
    cache = VectorCache(tmp_path, "a teacher", 3)
    assert cache.missing(["one", "two", "three"]) == ["three"]
    cache.append(["three", "four"], vectors_of(["three", "four"]))
    wanted = ["four", "three", "two"]
    assert np.array_equal(cache.vectors()[cache.rows_of(wanted)], vectors_of(wanted))
    assert (tmp_path / VECTORS).stat().st_size == 4 * 3 * 2


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = filled(tmp_path, ["one", "two"])

    def full(path: Path, position: int, content: bytes) -> None:
        with path.open("r+b") as file:
            file.seek(position)
            file.write(content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(vector_cache, "_write_at", full)
        with pytest.raises(DataError, match=r"No space left.*is kept; make room.*same command"):
            cache.append(["three"], vectors_of(["three"]))
    again = VectorCache(tmp_path, "a teacher", 3)
    assert again.missing(["one", "two", "three"]) == ["three"]
    again.append(["three"], vectors_of(["three"]))
    assert np.array_equal(
        again.vectors()[again.rows_of(["two", "three"])], vectors_of(["two", "three"])
    )


def test_what_another_process_added_is_seen(tmp_path: Path) -> None:
    first, second = (VectorCache(tmp_path, "a teacher", 3) for _ in range(2))
    first.append(["one", "two"], vectors_of(["one", "two"]))
    second.append(["two", "three"], vectors_of(["two", "three"]))  # it did not know of "two"
    wanted = ["three", "two", "one"]
    assert np.array_equal(second.vectors()[second.rows_of(wanted)], vectors_of(wanted))
    first.append(["four"], vectors_of(["four"]))
    assert np.array_equal(first.vectors()[first.rows_of(["three"])], vectors_of(["three"]))


def test_the_vectors_of_another_teacher_are_refused(tmp_path: Path) -> None:
    filled(tmp_path, ["one"])
    with pytest.raises(DataError, match=r"'a teacher'.*expected.*'another'.*another folder"):
        VectorCache(tmp_path, "another", 3)
    (tmp_path / ABOUT).write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        VectorCache.open(tmp_path, "a teacher")
    (tmp_path / ABOUT).write_text("[]")
    with pytest.raises(DataError, match="no dimension"):
        VectorCache.open(tmp_path, "a teacher")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e9])
def test_vectors_that_are_not_finite_are_refused_and_the_others_kept(
    tmp_path: Path, bad: float
) -> None:
    cache = filled(tmp_path, ["one"])
    values = vectors_of(["two", "three"])
    values[1, 0] = bad
    with pytest.raises(DataError, match=r"NaN or infinity for 'three'.*are kept"):
        cache.append(["two", "three"], values)
    assert VectorCache(tmp_path, "a teacher", 3).missing(["one", "two"]) == ["two"]
    with pytest.raises(DataError, match=r"an array \(1, 2\) for 1 sentences; expected 3"):
        cache.append(["two"], np.ones((1, 2)))

"""Indexes of earlier versions are opened and searched as they were then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from genpool.search import SearchIndex, delete_rows, index_writer
from tests.golden.make_index import SENTENCES, VALUES, VECTORS
from tests.helpers.small_indexes import by_loops

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("version", [1, 2])
def test_an_index_of_an_earlier_version_is_searched(version: int) -> None:
    folder = GOLDEN / f"v{version}-index"
    assert json.loads((folder / "index.json").read_text())["format_version"] == version
    index = SearchIndex.open(folder)
    assert [index.sentence(row) for row in range(len(index))] == SENTENCES
    assert index.card.model.title == "Golden"
    for query in VECTORS:
        [hits] = index.search(query, top=9, exact=True)
        assert [hit.row for hit in hits] == [row for row, _ in by_loops(VECTORS, query, 9)]


def test_the_second_version_has_columns_and_lists() -> None:
    index = SearchIndex.open(GOLDEN / "v2-index")
    assert (index.card.columns, index.card.id, index.card.lists) == (
        ("key", "lang", "half"),
        "key",
        3,
    )
    assert [tuple(index.values(row).values()) for row in range(9)] == VALUES
    pytest.importorskip("faiss", reason="faiss-cpu is not installed (extra faiss)")
    [hits] = index.search(VECTORS[5], top=3)
    assert [hit.row for hit in hits] == [row for row, _ in by_loops(VECTORS, VECTORS[5], 3)]


def test_an_index_of_the_first_version_is_extended_in_its_format(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "v1-index", tmp_path / "index"))
    model = SearchIndex.open(folder).card.model
    with index_writer(folder, 2, model, append=True) as write:
        write(["new"], VECTORS[:1])
    index = SearchIndex.open(folder)
    assert [index.sentence(row) for row in range(len(index))] == [*SENTENCES, "new"]
    assert json.loads((folder / "index.json").read_text())["format_version"] == 1


def test_rows_of_the_second_version_are_deleted(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "v2-index", tmp_path / "index"))
    assert delete_rows(folder, ["w0", "w8"]) == 2
    assert len(SearchIndex.open(folder)) == 7

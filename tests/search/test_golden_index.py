"""The golden index of the format is opened, searched and changed, for ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from genpool.search import SearchIndex, delete_rows, index_writer
from tests.golden.make_index import FOLDER, SENTENCES, VALUES, VECTORS
from tests.helpers.small_indexes import by_loops


def test_the_golden_index_is_searched() -> None:
    assert json.loads((FOLDER / "index.json").read_text())["format_version"] == 1
    index = SearchIndex.open(FOLDER)
    assert [index.sentence(row) for row in range(len(index))] == SENTENCES
    assert [tuple(index.values(row).values()) for row in range(9)] == VALUES
    card = index.card
    assert (card.model.title, card.columns, card.id, card.lists) == (
        "Golden",
        ("key", "lang", "half"),
        "key",
        3,
    )
    for query in VECTORS:
        [hits] = index.search(query, top=9, exact=True)
        assert [hit.row for hit in hits] == [row for row, _ in by_loops(VECTORS, query, 9)]
    pytest.importorskip("faiss", reason="faiss-cpu is not installed (extra faiss)")
    [hits] = index.search(VECTORS[5], top=3)
    assert [hit.row for hit in hits] == [row for row, _ in by_loops(VECTORS, VECTORS[5], 3)]


def test_the_golden_index_is_extended_and_rows_of_it_deleted(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "index"))
    card = SearchIndex.open(folder).card
    with index_writer(folder, 2, card.model, card.columns, card.id, append=True) as write:
        write(["new"], VECTORS[:1], [("w9", None, 1.5)])
    assert delete_rows(folder, ["w0", "w8"]) == 2
    index = SearchIndex.open(folder)
    assert [index.sentence(row) for row in range(len(index))] == [*SENTENCES[1:8], "new"]

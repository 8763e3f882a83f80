"""Columns on the command line: `encode --id --columns --append`, `search --where`, `index`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from genpool.search import SearchIndex
from tests.helpers.commands import Command

MODEL = "runs/rules/best"
TABLE = "key,lang,text\na1,en,A dog runs.\na2,de,An animal sleeps.\na3,en,A man sleeps.\n"


@pytest.fixture
def table(place: Path) -> Path:
    (place / "texts.csv").write_text(TABLE)
    return place


def encode(genpool: Command, file: str, output: str, *options: str) -> None:
    columns = ("--column", "text", "--id", "key", "--columns", "lang")
    genpool("encode", MODEL, file, "-o", output, *columns, *options).ok()


def test_an_index_is_made_extended_filtered_and_deleted_from(genpool, table):
    once = ("--column", "text", "--columns", "key,lang")  # or one by one
    genpool("encode", MODEL, "texts.csv", "-o", "once/", *once).ok()
    assert SearchIndex.open("once").values(0) == {"key": "a1", "lang": "en"}
    encode(genpool, "texts.csv", "mine/", "--columns", "key")
    (table / "more.jsonl").write_text('{"key": 4, "lang": "fr", "text": "The dog sleeps."}\n')
    encode(genpool, "more.jsonl", "mine/", "--append")
    said = genpool("index", "info", "mine")
    assert said.out.splitlines()[:4] == [
        "rows:        4",
        "dimensions:  20",
        "columns:     key (id), lang",
        "lists:       none: searches are exact",
    ]
    said = genpool("search", "mine", "A dog runs.", "--top", 1)
    assert said.out == "1.0000\t0\tA dog runs.\tkey=a1\tlang=en\n"
    said = genpool("search", "mine", "A dog runs.", "--where", 'lang in ["de", "fr"]', "--json")
    hits = json.loads(said.out)["hits"]
    assert {hit["row"] for hit in hits} == {1, 3}
    assert {"key": 4, "lang": "fr"} in [hit["values"] for hit in hits]
    said = genpool("index", "delete", "mine", "a1", "4")
    assert (said.code, said.out) == (0, "deleted 2 rows of mine\n")
    assert [SearchIndex.open("mine").values(row)["key"] for row in range(2)] == ["a2", "a3"]


def test_lists_are_built_and_searched(genpool, table):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed (extra faiss)")
    encode(genpool, "texts.csv", "mine/")
    assert genpool("index", "build", "mine").out == "mine: 2 lists\n"
    for options in ((), ("--exact",)):
        said = genpool("search", "mine", "A dog runs.", "--top", 1, *options)
        assert said.out.startswith("1.0000\t0\tA dog runs."), said.err


def test_parquet_and_json_lines_keep_columns_beside_the_vectors(genpool, table):
    encode(genpool, "texts.csv", "vectors.parquet")
    encode(genpool, "texts.csv", "vectors.jsonl")
    read = parquet.read_table("vectors.parquet").to_pydict()
    assert list(read) == ["key", "lang", "sentence", "vector"]
    assert (read["key"], read["lang"]) == (["a1", "a2", "a3"], ["en", "de", "en"])
    rows = [json.loads(line) for line in Path("vectors.jsonl").read_text().splitlines()]
    assert [list(row) for row in rows] == [["key", "lang", "sentence", "vector"]] * 3
    assert [row["key"] for row in rows] == ["a1", "a2", "a3"]
    assert np.abs(np.array([row["vector"] for row in rows]) - np.array(read["vector"])).max() < 1e-5


def test_columns_of_parquet_keep_their_types(genpool, table):
    import datetime

    import pyarrow as arrow

    days = [datetime.date(2020, 1, 2), None]
    source = arrow.table({"key": [1, 2], "lang": days, "text": ["A dog.", "A man."]})
    parquet.write_table(source, "texts.parquet")
    encode(genpool, "texts.parquet", "vectors.parquet")
    written = parquet.read_table("vectors.parquet")
    assert written.schema.field("key").type == arrow.int64()
    assert written.column("lang").to_pylist() == days
    encode(genpool, "texts.parquet", "mine/")
    assert SearchIndex.open("mine").values(0) == {"key": 1, "lang": "2020-01-02"}

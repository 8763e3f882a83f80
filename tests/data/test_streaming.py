"""Reading streams: a large file never becomes Python objects all at once."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Generator
from typing import cast

import pytest

from genpool.data import Example, TableReader, YelpReader

ROWS = 200_000
TEXT = "a sentence of some length that would fill the memory if all of them were kept"
MEGABYTE = 1 << 20


def write_tsv(folder):
    path = folder / "large.tsv"
    with path.open("w", encoding="utf-8") as file:
        file.write("label\ttext\n")
        file.writelines(f"{row % 3}\t{row} {TEXT}\n" for row in range(ROWS))
    return path


def write_parquet(folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = folder / "large.parquet"
    texts = [f"{row} {TEXT}" for row in range(ROWS)]
    table = pyarrow.table({"label": [row % 3 for row in range(ROWS)], "text": texts})
    parquet.write_table(table, path, row_group_size=10_000)
    return path


def count_and_peak(examples):
    tracemalloc.start()
    try:
        count = sum(1 for _ in examples)
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("write", [write_tsv, write_parquet])
def test_memory_does_not_grow_with_the_table(tmp_path, write):
    path = write(tmp_path)
    count, peak = count_and_peak(TableReader(path).read("all"))
    assert count == ROWS
    assert peak < 3 * MEGABYTE  # the texts alone are 17 MB


def test_a_split_of_yelp_is_drawn_without_keeping_the_texts(tmp_path):
    path = tmp_path / "yelp_academic_dataset_review.json"
    with path.open("w", encoding="utf-8") as file:
        for row in range(ROWS):
            file.write(json.dumps({"stars": 1 + row % 5, "text": f"{row} {TEXT}"}) + "\n")
    reader = YelpReader(path, sizes=(1_000, 100, 100))
    count, peak = count_and_peak(reader.read("dev"))
    assert count == 100
    assert peak < 10 * MEGABYTE  # a few bytes a row for the draw; the file is 20 MB


def test_the_first_rows_do_not_wait_for_the_last(tmp_path):
    path = write_tsv(tmp_path)
    with path.open("ab") as file:
        file.write(b"this row is bad\n")
    rows = cast(Generator[Example, None, None], TableReader(path).read("all"))
    assert [next(rows).label for _ in range(10)] == list("0120120120")
    rows.close()

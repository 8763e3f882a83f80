"""The real tables, read unchanged; their folder is named by GENPOOL_DATA."""

from __future__ import annotations

import pytest

from genpool.data import TableReader
from tests.helpers.shared_data import shared_data

# The rows that the README of the data lists for each folder.
ROWS = {
    "snli": {"train": 99_890, "dev": 9_842, "test": 9_824, "test.raw": 9_824},
    "mnli": {"dev_matched": 9_815, "dev_mismatched": 9_832},
    "sick": {"train": 4_500, "dev": 500, "test": 4_927},
    "stsb": {"train": 5_749, "dev": 1_500, "test": 1_379},
    "reviews-stars": {"train": 188_460, "dev": 2_000, "test": 2_000},
    "reviews-age": {"train": 68_485, "dev": 4_000, "test": 4_000},
    "sst5": {"train": 8_544, "dev": 1_101, "test": 2_210},
    "trec": {"train": 5_452, "test": 500},
    "imdb": {"all": 50_000},
}
NLI = ("entailment", "neutral", "contradiction")
LABELS = {
    "snli": NLI,
    "mnli": NLI,
    "sick": NLI,
    "reviews-stars": tuple("12345"),
    "reviews-age": ("18-24", "25-34", "35-49", "50-64", "65+"),
}
PAIRS = {"snli", "mnli", "sick", "stsb"}
SCORED = {"sick", "stsb"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_a_real_table_is_read(name):
    reader = TableReader(shared_data(name), labels=LABELS.get(name))
    assert [split for split in reader.splits() if split in ROWS[name]] == list(ROWS[name])
    assert reader.is_pair is (name in PAIRS)
    for split, expected in ROWS[name].items():
        rows = 0
        for example in reader.read(split):
            rows += 1
            assert (example.second is not None) is (name in PAIRS)
            assert (example.score is not None) is (name in SCORED)
            assert (example.label is None) is (name == "stsb")
        assert rows == expected
    assert not reader.skipped

"""The pairs of the embedded NLI classifier: nothing that is scored is learned."""

from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.release import nli_pairs
from benchmarks.release.nli_pairs import (
    MULTINLI,
    NliPair,
    learned_half,
    read_pairs,
    scored_half,
    split_off,
    training_pairs,
    write_pairs,
)
from genpool.data import TableReader
from genpool.errors import DataError
from genpool.reproduction.rules import LABELS
from tests.helpers.shared_data import shared_data

TABLES = {
    "snli/train": ["A man , who 's tall , ca n't sleep .\tA man sits ."],
    "snli/dev": ["A dog runs .\tA dog sleeps ."],
    "snli/test": ["A cat runs .\tA cat sleeps ."],
    "sick/train": ["A kid plays\tA child plays", "a CAT runs\tA cat sleeps."],
    "sick/dev": ["A kid sings\tA child sings"],
    "sick/test": ["A kid eats\tA child eats"],
    "mnli/dev_matched": [f'Matched  "premise" {row // 3}\tClaim {row}' for row in range(90)],
    "mnli/dev_mismatched": [f"Mismatched premise {row // 2}\tClaim {row}" for row in range(80)]
    + ["Matched premise 4!\tClaim 4"],
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, rows in TABLES.items():
        columns = "sentence1\tsentence2" if name.startswith("sick") else "premise\thypothesis"
        lines = [f"label\t{columns}", *(f"neutral\t{row}" for row in rows)]
        path = tmp_path / f"{name}.tsv.xz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode()))
    monkeypatch.setenv("GENPOOL_DATA", str(tmp_path))
    monkeypatch.setattr(nli_pairs, "MULTINLI_DEV_ROWS", 10)
    return tmp_path


def test_tokenized_pairs_are_raw_text_and_another_label_is_refused(data: Path) -> None:
    assert read_pairs("snli/train") == (
        NliPair("neutral", "A man, who's tall, can't sleep.", "A man sits.", "snli/train"),
    )
    text = "label\tpremise\thypothesis\n-\ta\tb\n"
    (data / "snli" / "train.tsv.xz").write_bytes(lzma.compress(text.encode()))
    with pytest.raises(DataError, match="has the label '-'; expected entailment, neutral"):
        read_pairs("snli/train")


@pytest.mark.usefixtures("data")
def test_every_pair_is_in_one_half_and_every_premise_too() -> None:
    learned = [pair for table in MULTINLI for pair in learned_half(table)]
    scored = [pair for table in MULTINLI for pair in scored_half(table)]
    assert len(learned) + len(scored) == 171
    assert 50 < len(learned) < 120
    assert not {pair.key[0] for pair in learned} & {pair.key[0] for pair in scored}
    assert learned_half(MULTINLI[0], seed=1) != learned_half(MULTINLI[0])
    # No more rows are taken out than asked for, with all pairs of their premises.
    pairs = read_pairs(MULTINLI[0])
    others, taken = split_off(pairs, 10)
    assert len(taken) == 9  # three premises of three pairs
    assert sorted(others + taken) == sorted(pairs)
    assert not {pair.premise for pair in others} & {pair.premise for pair in taken}


@pytest.mark.usefixtures("data")
def test_no_pair_of_a_dev_or_test_set_is_learned() -> None:
    train, dev = training_pairs(sick_repeats=2, generated=30)
    counts = Counter(pair.source for pair in train)
    assert counts["snli/train"] == 1
    assert counts["rules"] == 30
    assert counts["sick/train"] == 2  # the other one is a test pair of SNLI in other letters
    counts = Counter(pair.source.split("/")[0] for pair in dev)
    assert (counts["snli"], counts["sick"]) == (1, 1)
    assert 8 <= counts["mnli"] <= 10  # complete premises, of two or three pairs
    scored = [pair for table in ("snli/test", "sick/test") for pair in read_pairs(table)]
    scored += [*dev, *(pair for table in MULTINLI for pair in scored_half(table))]
    assert not {pair.key for pair in train} & {pair.key for pair in scored}
    learned = {pair.key for table in MULTINLI for pair in learned_half(table)}
    assert {pair.key for pair in train + dev if pair.source in MULTINLI} == learned


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = ("neutral", 'He said "no', "It's 5 o'clock"), ("entailment", "Été", "A, b")
    pairs = [NliPair(*row, "snli") for row in rows]
    write_pairs(tmp_path / "new" / "train.tsv", pairs)
    read = TableReader(tmp_path / "new").read("train")
    assert tuple((example.label, example.first, example.second) for example in read) == rows


@pytest.mark.parametrize("table", MULTINLI)
def test_the_halves_of_multinli_are_about_equal_in_rows_and_labels(table: str) -> None:
    shared_data(f"{table}.tsv.xz")
    learned, scored = learned_half(table), scored_half(table)
    for label in LABELS:
        one, other = (sum(pair.label == label for pair in half) for half in (learned, scored))
        assert abs(one - other) < 0.07 * (one + other)

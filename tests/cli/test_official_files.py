"""Evaluate and predict on the official files of data sets, and on folders with several splits."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.cli import options
from genpool.data.reader import BAD_ROWS, READERS
from genpool.evaluation import read_predictions
from genpool.reproduction.readers import YelpReader

MODEL = "runs/rules/best"
PAIRS = [("A dog runs .", "An animal runs ."), ("An animal runs .", "A dog sleeps .")]
PAIRS += [("A man sleeps .", "A man runs ."), ("A dog sleeps .", "A dog sleeps .")]
LABELS = ("entailment", "neutral", "contradiction", "entailment")


@pytest.fixture
def model(place: Path) -> PairClassifier:
    return PairClassifier.from_pretrained(place / MODEL)


def write_nli(path: Path, labels: tuple[str, ...], prefix: str = "p") -> None:
    """A file as SNLI and MultiNLI have them, with PAIRS."""
    path.parent.mkdir(exist_ok=True)
    rows = [
        {
            "gold_label": label,
            "pairID": f"{prefix}{number}",
            "genre": "fiction",
            "sentence1": first,
            "sentence2": second,
            "sentence1_binary_parse": f"( {first} )",
            "sentence2_binary_parse": f"( {second} )",
        }
        for number, (label, (first, second)) in enumerate(zip(labels, PAIRS, strict=True))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def predicted(model: PairClassifier) -> list[str]:
    tokenized = [[side.split() for side in pair] for pair in PAIRS]
    return [model.labels[row.argmax()] for row in model.predict_tokenized(tokenized)]


@pytest.fixture
def snli(place: Path) -> Path:
    """snli_1.0 with three splits; one pair of test has no gold label."""
    for split in ("train", "dev", "test"):
        labels = (*LABELS[:3], "-") if split == "test" else LABELS
        write_nli(place / "snli_1.0" / f"snli_1.0_{split}.jsonl", labels, f"{split}-")
    return place / "snli_1.0"


def test_pairs_without_a_gold_label_are_counted_and_not_scored(genpool, place, snli, model):
    asked = ("evaluate", MODEL, snli, "--reader", "snli")
    said = genpool(*asked, "--json", "report.json").ok()
    right = sum(a == b for a, b in zip(predicted(model), LABELS[:3], strict=False))
    assert f"({right} of 3;" in said.out
    assert said.err == "rows left out: 1 no gold label\n"
    assert json.loads((place / "report.json").read_text())["accuracy"]["total"] == 3
    # The options of a reader are those of train; raw text and parse have the same tokens here.
    assert genpool(*asked, "--set", "reader.tokens=raw").ok().out == said.out
    genpool(*asked, "--set", "reader.token=raw", "--set", "training.epochs=1").refused(
        "Did you mean 'tokens'?", "'training' is not a section of this command; expected reader."
    )
    # The test split is scored unless another is named.
    assert "of 4;" in genpool(*asked, "--split", "dev").out
    (snli / "snli_1.0_test.jsonl").unlink()
    assert genpool(*asked).out == genpool(*asked, "--split", "dev").out
    genpool(*asked, "--split", "devel").refused(
        "unknown split 'devel'. Did you mean 'dev'? Known: dev, train."
    )


@pytest.fixture
def multinli(place: Path) -> Path:
    folder = place / "multinli_1.0"
    for split in ("train", "dev_matched", "dev_mismatched"):
        write_nli(folder / f"multinli_1.0_{split}.jsonl", LABELS)
    hidden = ("hidden",) * len(PAIRS)
    write_nli(folder / "multinli_0.9_test_matched_unlabeled.jsonl", hidden, "pair-")
    return folder


def test_a_saved_model_writes_the_submission_file_of_multinli(genpool, place, multinli, model):
    asked = ("predict", MODEL, multinli, "--reader", "multinli", "--split", "test_matched", "-o")
    said = genpool(*asked, "test_matched.csv")
    assert said == (0, "4 rows: test_matched.csv\n", "")
    with (place / "test_matched.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["pairID"] for row in rows] == ["pair-0", "pair-1", "pair-2", "pair-3"]
    assert [row["gold_label"] for row in rows] == predicted(model)
    assert genpool(*asked, "test_matched.tsv").code == 0
    assert read_predictions(place / "test_matched.tsv").gold == (None,) * 4


def test_the_csv_of_other_data_sets_is_a_table_of_predictions(genpool, place, snli, model):
    asked = ("predict", MODEL, snli, "--reader", "snli", "--split", "test", "-o")
    assert genpool(*asked, "labels.csv").code == 0
    with (place / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["predicted"] for row in rows] == predicted(model)
    assert [(row["first"], row["second"]) for row in rows] == PAIRS
    genpool(*asked, "labels.xlsx").refused("written as .tsv, .csv, .jsonl, .parquet")


def test_yelp_is_scored_on_the_split_that_training_draws(genpool, place):
    encoder = SentenceEncoder.from_pretrained(place / MODEL)
    TextClassifier(encoder, tuple("12345")).save_pretrained(place / "texts")
    rows = [{"stars": 1 + at % 5, "text": "A dog runs .", "review_id": at} for at in range(30)]
    (place / "review.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    yelp = ("--reader", "yelp", "--plugin", "genpool.reproduction")
    asked = ("predict", "texts", ".", *yelp, "--split", "test", "-o", "labels.tsv")
    said = genpool(*asked).refused("holds 30 rows that can be used; asked for 504000")
    sizes = """reader.sizes=["rest", 5, 7]"""
    assert f"--set '{sizes[:22]}" in said.err  # the way out is spelled as it is given next
    genpool(*asked, "--set", sizes).ok()
    ids = read_predictions(place / "labels.tsv").ids
    expected = YelpReader(place, sizes=("rest", 5, 7)).read("test")
    assert list(ids) == [example.id for example in expected]
    said = genpool("evaluate", "texts", ".", *yelp, "--set", sizes).ok()
    assert "of 7;" in said.out


def test_a_wrong_column_is_told_without_torch(place):
    arguments = ["genpool", "predict", "pairs.tsv", "-o", "out.tsv", "--label", "x"]
    program = (
        f"import sys; sys.argv = {arguments}\n"
        "from genpool.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "2 False\n"
    assert "unknown column 'x'" in run.stderr


def test_every_reader_of_files_can_be_named():
    names = get_args(options.ReaderName)[1].metavar.split("|")
    own = {name: kind for name, kind in READERS.items() if name not in READERS.plugins}
    assert set(names) == {name for name, kind in own.items() if kind.needs_path}
    assert tuple(get_args(options.BadRows)[1].metavar.split("|")) == BAD_ROWS

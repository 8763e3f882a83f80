"""genpool predict and evaluate on tables, lines and sentences, with the columns of training."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.evaluation import read_predictions
from genpool.recipes import recipe_text
from genpool.training import read_settings, train
from tests.helpers.small_models import lively

PAIR_MODEL = "runs/rules/best"
TEXTS = ["A dog runs.", "", "A man sleeps, and a dog; too."]
LABELS = ("bad", "good")


@pytest.fixture
def model(place: Path) -> TextClassifier:
    """The folder films: a classifier of texts trained on the columns stars and body."""
    encoder = SentenceEncoder.from_pretrained(place / PAIR_MODEL)
    classifier = lively(TextClassifier(encoder, LABELS)).eval()
    classifier.notes = {"columns": {"label": "stars", "first": "body"}}
    classifier.save_pretrained(place / "films")
    return classifier


def write_films(path: Path, header: str = "stars,text,body", encoding: str = "utf-8") -> list[str]:
    """A table whose column `body` holds TEXTS, and the labels of its rows."""
    labels = ["good", "bad", "good"]
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file)
        writer.writerow(header.split(","))
        writer.writerows([label, "no", text] for label, text in zip(labels, TEXTS, strict=True))
    return labels


def test_the_columns_that_a_model_was_trained_on_are_remembered(genpool, place, model):
    labels = write_films(place / "films.csv")
    genpool("predict", "films", "films.csv", "-o", "labels.csv").ok()
    with (place / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == TEXTS
    assert [row["gold"] for row in rows] == labels
    assert [row["predicted"] for row in rows] == model.predict(TEXTS)
    right = sum(a == b for a, b in zip(labels, model.predict(TEXTS), strict=True))
    said = genpool("evaluate", "films", "films.csv", "-o", "scored.tsv")
    assert f"({right} of 3;" in said.out
    assert list(read_predictions(place / "scored.tsv").predicted) == model.predict(TEXTS)


def test_a_run_saves_the_columns_of_its_table(place, genpool):
    rows = "".join(f"a;x {at}\nb;y {at}\n" for at in range(12))
    (place / "own.csv").write_text(f"klasse;satz\n{rows}")
    overrides = ['reader.first="satz"', 'reader.label="klasse"', "training.epochs=1"]
    small = ["embedding.word_dim=4", "encoder.hidden_dim=4", "pooling.hidden_dim=4"]
    settings = read_settings(recipe_text("texts-scratch"), [*overrides, *small])
    train(settings, place / "own.csv", place / "own", show_progress=False)
    config = json.loads((place / "own" / "best" / "config.json").read_text())
    assert config["notes"]["columns"] == {"label": "klasse", "first": "satz"}
    said = genpool("evaluate", "own/best", "own.csv").ok()
    assert "of 24;" in said.out


def test_a_sentence_is_labelled(genpool, model):
    said = genpool("predict", "films", "A dog runs.").ok()
    probabilities = model.predict_proba(["A dog runs."])[0]
    expected = sorted(zip(probabilities, LABELS, strict=True), reverse=True)
    assert [line.split() for line in said.out.splitlines()] == [
        [label, f"{value:.1%}"] for value, label in expected
    ]


def test_a_pair_is_labelled_with_the_embedded_model_too(genpool, place):
    pair = ("A man is eating.", "Nobody eats.")
    for arguments, model in (
        (pair, PairClassifier.from_pretrained()),
        ((PAIR_MODEL, *pair), PairClassifier.from_pretrained(place / PAIR_MODEL)),
    ):
        said = genpool("predict", *arguments).ok()
        assert said.out.split()[0] == model.predict([pair])[0]


def test_sentences_that_do_not_suit_the_model_are_told(genpool, place, model):
    genpool("predict", "films", "A dog runs.", "A man sleeps.").refused(
        "got 2 sentences; the model takes 1 at a time. Several are given as a table"
    )
    said = genpool("predict", "films", "A dog runs.", "-o", "x.tsv")
    assert "the label of a sentence is printed" in said.err
    said = genpool("predict", "films", "A dog runs.", "pairs.tsv")
    assert "expected [MODEL] DATA" in said.err
    # A file that does not exist is no sentence.
    for name in ("flims.csv", "my films.csv", "flims"):
        genpool("predict", "films", name).refused(f"{name}: there is no such file or folder")


def test_lines_of_standard_input_are_labelled_in_order(genpool, place, model):
    text = "\n".join(TEXTS) + "\n"
    said = genpool("predict", "films", "-", stdin=text.encode()).ok()
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert rows[0] == ["id", "gold", "predicted", "text", "p:bad", "p:good"]
    assert [row[2] for row in rows[1:]] == model.predict(TEXTS)
    assert [row[3] for row in rows[1:]] == TEXTS
    (place / "texts.txt").write_text(text)
    assert genpool("predict", "films", "texts.txt").out == said.out


def test_pairs_of_standard_input_are_separated_by_a_tab(genpool, place):
    pairs = [("A dog runs.", "An animal runs."), ("An animal runs.", "A dog runs.")]
    lines = "".join(f"{first}\t{second}\n" for first, second in pairs)
    genpool("predict", PAIR_MODEL, "-", "-o", "labels.jsonl", stdin=lines.encode()).ok()
    rows = [json.loads(line) for line in (place / "labels.jsonl").read_text().splitlines()]
    expected = PairClassifier.from_pretrained(place / PAIR_MODEL).predict(pairs)
    assert [row["predicted"] for row in rows] == expected
    said = genpool("predict", PAIR_MODEL, "-", stdin=b"A dog runs.\n")
    assert "standard input, line 1: has 1 sentence; expected two with a tab" in said.err

"""Predict, evaluate, encode, similarity, recipes: what they print and write."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier
from genpool.cli.options import require_sentence_or_file
from genpool.errors import DataError
from genpool.evaluation import read_predictions
from genpool.recipes import RECIPE_GROUPS, recipe_names, recipe_text
from tests.helpers.training_runs import write_table

MODEL = "runs/rules/best"
PAIRS = [("A dog runs.", "An animal runs."), ("An animal runs.", "A dog runs.")]


@pytest.fixture
def model(place: Path) -> PairClassifier:
    return PairClassifier.from_pretrained(place / MODEL)


def test_predict_writes_a_label_for_every_row(genpool, place, model):
    said = genpool("predict", MODEL, "pairs.tsv", "-o", "labels.tsv")
    assert (said.code, said.out) == (0, "2 rows: labels.tsv\n")
    found = read_predictions(place / "labels.tsv")
    assert list(found.predicted) == model.predict(PAIRS)
    assert found.gold == ("entailment", "neutral")


def test_a_column_of_labels_with_an_unusual_name_is_asked_for_and_taken(genpool, place):
    _, *rows = (place / "pairs.tsv").read_text().replace("\t", ",").splitlines()
    (place / "german.csv").write_text("\n".join(["urteil,frage,antwort", *rows]) + "\n")
    columns = ("german.csv", "--first", "frage", "--second", "antwort")
    said = genpool("evaluate", MODEL, *columns).refused()
    assert said.err.startswith("error: german.csv, line 1: no column of labels was found")
    assert "this table has: 'urteil', 'frage', 'antwort'" in said.err
    assert "--label" in said.err
    said = genpool("evaluate", MODEL, *columns, "--label", "urteil").ok()
    assert said.out == genpool("evaluate", MODEL, "pairs.tsv").out


LEFT_OUT = (
    "rows left out: 2 wrong number of fields\n"
    "the first of them: bad.tsv, line 3: has 1 fields; expected 3, as in the header\n"
)


def test_bad_rows_are_left_out_if_asked_to(genpool, place, model):
    header, first, second = (place / "pairs.tsv").read_text().splitlines()
    lines = [header, first, "neutral", "neutral\tA dog runs.", second]
    (place / "bad.tsv").write_text("\n".join(lines) + "\n")
    asked = ("predict", MODEL, "bad.tsv", "-o", "labels.tsv", "--bad-rows")
    genpool(*asked, "error").refused("bad.tsv, line 3: has 1 fields; expected 3")
    said = genpool(*asked, "skip")
    assert said == (0, "2 rows: labels.tsv\n", LEFT_OUT)
    found = read_predictions(place / "labels.tsv")
    assert list(found.predicted) == model.predict(PAIRS)
    assert found.ids == ("0", "3")  # rows of the table, those left out counted
    expected = genpool("evaluate", MODEL, "pairs.tsv")
    assert (expected.code, expected.err) == (0, "")
    said = genpool("evaluate", MODEL, "bad.tsv", "--bad-rows", "skip")
    assert said == (0, expected.out, LEFT_OUT)
    (place / "worse.tsv").write_text("label\tpremise\thypothesis\nneutral\tA dog runs.\n")
    said = genpool("evaluate", MODEL, "worse.tsv", "--bad-rows", "skip").refused()
    assert said.err.startswith("rows left out: 1 wrong number of fields\nthe first of them")
    assert "error: no rows" in said.err


def test_evaluate_prints_accuracy_per_class_and_confusion(genpool, place, model):
    said = genpool("evaluate", MODEL, "pairs.tsv", "--json", "numbers.json").ok()
    right = sum(
        label == gold
        for label, gold in zip(model.predict(PAIRS), ("entailment", "neutral"), strict=True)
    )
    assert f"Accuracy {50 * right:.2f} % ({right} of 2;" in said.out
    lines = [line.split() for line in said.out.splitlines()]
    assert ["class", "precision", "recall", "F1", "rows"] in lines
    assert ["gold", "\\", "predicted", "entailment", "neutral", "contradiction"] in lines
    assert "|" not in said.out and "**" not in said.out
    numbers = json.loads((place / "numbers.json").read_text())
    assert numbers["accuracy"]["correct"] == right
    sure = model.predict_proba(PAIRS).max(axis=1).mean()
    assert numbers["accuracy"]["mean_confidence"] == pytest.approx(sure, abs=1e-6)
    assert f"Mean confidence {100 * sure:.2f} %, expected calibration error" in said.out


def test_evaluate_agrees_with_the_scores_of_the_run(genpool, place, rules_run):
    """The same pairs as a table give the accuracy that training reported."""
    from genpool.reproduction.rules import RulesReader

    examples = RulesReader(sizes=(60, 12, 9)).read("test")
    rows = [(str(it.label), it.first, str(it.second), str(it.genre)) for it in examples]
    write_table(place / "test.tsv", rows, ("label", "premise", "hypothesis", "genre"))
    assert genpool("evaluate", MODEL, "test.tsv", "--json", "numbers.json").code == 0
    reported = json.loads((rules_run / "results.json").read_text())["test"]
    found = json.loads((place / "numbers.json").read_text())["accuracy"]
    for name in ("mean_confidence", "calibration_error"):  # other batches, other rounding
        assert found.pop(name) == pytest.approx(reported.pop(name), abs=1e-6)
    assert found == reported


def test_compare_asks_whether_a_is_better_than_b(genpool, place):
    header = "id\tgold\tpredicted\n"
    a = "".join(f"{row}\tx\t{'x' if row < 9 else 'y'}\n" for row in range(10))
    b = "".join(f"{row}\tx\t{'x' if row < 2 else 'y'}\n" for row in range(10))
    (place / "a.tsv").write_text(header + a)
    (place / "b.tsv").write_text(header + b)
    said = genpool("evaluate", "--compare", "a.tsv", "b.tsv", "--json", "numbers.json").ok()
    assert "a minus b = +70.00 points" in said.out
    numbers = json.loads((place / "numbers.json").read_text())["comparison"]
    assert (numbers["only_a"], numbers["only_b"]) == (7, 0)
    assert numbers["mcnemar_p_value"] == pytest.approx(2 / 2**7)
    assert numbers["t_p_value"] < 0.01


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        ("a/predictions/dev.tsv", "b/predictions/dev.tsv", "a/predictions/dev b/predictions/dev"),
        ("all/new/dev.tsv", "all/old/dev.tsv", "new/dev old/dev"),
        ("dev.tsv", "dev.txt", "dev.tsv dev.txt"),
        ("a/dev.tsv", "a/dev.tsv", "dev dev"),
    ],
)
def test_compared_files_are_called_by_what_tells_them_apart(genpool, place, a, b, names):
    for path in (place / a, place / b):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id\tgold\tpredicted\n0\tx\tx\n1\ty\tx\n")
    said = genpool("evaluate", "--compare", a, b).ok()
    one, other = names.split()
    first_words = [line.split()[0] for line in said.out.splitlines() if line]
    assert one in first_words and other in first_words
    assert f"{one} minus {other} = " in said.out


def sentence(chance: random.Random) -> str:
    words = ("A", "dog", "runs", "sleeps", "man", "the", "animal", "park")
    return " ".join(chance.choice(words) for _ in range(chance.randint(1, 6)))


def test_evaluate_similarity_correlates_and_regresses(genpool, place):
    chance = random.Random(0)
    (place / "sts").mkdir()
    for name, count in {"train": 20, "test": 12}.items():
        rows = [
            (f"{chance.uniform(0, 5):.2f}", sentence(chance), sentence(chance))
            for _ in range(count)
        ]
        write_table(place / "sts" / f"{name}.tsv", rows, ("gold", "s", "t"))
    columns = ("--score", "gold", "--first", "s", "--second", "t")
    said = genpool("evaluate", MODEL, "sts", "--similarity", *columns, "--json", "n.json").ok()
    starts = [line.split()[:2] for line in said.out.splitlines()]
    assert ["cosine", "12"] in starts and ["regression", "12"] in starts
    numbers = json.loads((place / "n.json").read_text())
    assert numbers.keys() == {"similarity", "regression"}
    alone = genpool("evaluate", MODEL, "sts/test.tsv", "--similarity", *columns)
    assert ["cosine", "12"] in [line.split()[:2] for line in alone.out.splitlines()]
    assert "regression" not in alone.out


def test_a_probe_of_few_rows_says_which_folds_it_can_have(genpool, place):
    chance = random.Random(0)
    write_table(place / "few.tsv", [(("dog", "man")[at % 2], sentence(chance)) for at in range(8)])
    said = genpool("evaluate", MODEL, "few.tsv", "--probe").refused()
    advised = re.search(r"--folds \d+", said.err)
    assert advised, said.err
    said = genpool("evaluate", MODEL, "few.tsv", "--probe", *advised[0].split()).ok()
    assert "(4 folds)" in said.out


def test_similarity_is_the_cosine_and_of_two_files_goes_line_by_line(genpool, place, model):
    said = genpool("similarity", "A dog runs.", "An animal runs.", "--model", MODEL)
    one, other = np.asarray(model.encoder.encode(["A dog runs.", "An animal runs."]), np.float64)
    cosine = one @ other / np.sqrt((one @ one) * (other @ other))
    assert (said.code, said.out) == (0, f"{cosine:.4f}\n")
    chance = random.Random(0)
    sides = [[sentence(chance) for _ in range(1030)] for _ in range(2)]  # more than one chunk
    sides[0][3] = sides[1][3] = ""
    for name, lines in zip("ab", sides, strict=True):
        (place / f"{name}.txt").write_text("\n".join(lines) + "\n")
    said = genpool("similarity", "a.txt", "b.txt", "--model", MODEL).ok()
    found = [float(line) for line in said.out.splitlines()]
    left, right = (np.asarray(model.encoder.encode(lines), np.float64) for lines in sides)
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = (left * right).sum(axis=1) / np.where(norms > 0, norms, 1)
    assert len(found) == 1030
    assert np.abs(np.array(found) - cosines).max() < 1e-4
    assert found[3] == 0


def test_the_name_of_a_file_that_is_not_there_is_not_a_sentence():
    for text in ("typo1.txt", "runs/none.TSV", "none.jsonl.gz"):
        with pytest.raises(DataError, match=f"{text}: there is no such file"):
            require_sentence_or_file(text)
    for text in ("Read notes.txt", "dog.", "txt", ".txt", "a.dog", "3.5", "dog " * 2000):
        require_sentence_or_file(text)


def test_recipes_are_listed_with_their_titles_shown_and_copied(genpool, tmp_path):
    lines = genpool("recipes").out.splitlines()
    recipes = [line for line in lines if line.startswith("  ")]
    assert sorted(line.split()[0] for line in recipes) == recipe_names()
    assert all(len(line.split()) > 3 for line in recipes)
    assert [line for line in lines if line and line not in recipes] == list(RECIPE_GROUPS)
    # A copy is a file of your own, and never written over another.
    assert genpool("recipes", "show", "snli").out == recipe_text("snli")
    path = tmp_path / "mine.toml"
    said = genpool("recipes", "copy", "sst5", path).ok()
    assert f"genpool train {path}" in said.out
    assert path.read_text() == recipe_text("sst5")
    path.write_text("changed")
    genpool("recipes", "copy", "snli", path).refused("already exists")
    assert path.read_text() == "changed"

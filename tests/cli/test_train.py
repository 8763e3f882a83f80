"""The command `train`: a recipe and data in, a run out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from tests.helpers.training_runs import (
    RECIPE,
    SMALL_RULES,
    reviews,
    scores,
    sets,
    start,
    write_table,
)

SMALL = sets([*SMALL_RULES, "reader.sizes=[24, 6, 6]", "training.epochs=1"])


@pytest.fixture
def films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a recipe and tables of one's own."""
    (tmp_path / "films.toml").write_text(RECIPE)
    (tmp_path / "data").mkdir()
    for seed, (name, count) in enumerate({"train": 16, "dev": 8, "test": 6}.items()):
        write_table(tmp_path / "data" / f"{name}.tsv", reviews(count, seed))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_recipe_of_your_own_trains_on_your_tables(genpool, films):
    said = genpool("train", "films.toml", "--data", "data", "--out", "run").ok()
    results = json.loads((films / "run" / "results.json").read_text())
    assert said.out.splitlines() == [
        f"dev accuracy: {100 * results['dev']['accuracy']:.2f} %",
        f"test accuracy: {100 * results['test']['accuracy']:.2f} %",
        "report: run/report.md",
        "model:  run/best",
    ]
    for line in ("rows: train 16, dev 8, test 6", "epoch 1: 16/16", "step 2: train loss"):
        assert line in said.err


def test_bad_rows_can_be_skipped_and_are_counted(genpool, films):
    write_table(films / "data" / "train.tsv", [*reviews(16, 0), ("good", "")])
    arguments = ("train", "films.toml", "--data", "data", "--out", "run")
    genpool(*arguments).refused("train.tsv, line 18: column 'text' is empty", 'bad_rows="skip"')
    said = genpool(*arguments, "--bad-rows", "skip").ok()
    assert "rows left out: 1 empty side" in said.err


@pytest.mark.slow
def test_bfloat16_trains_where_the_device_has_it(tmp_path):
    """In a process of its own: a process keeps its precision."""
    out = tmp_path / "run"
    half = sets(["training.precision=bfloat16"])
    process = start("train", "rules", "--out", out, "--quiet", *SMALL, *half)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert json.loads((out / "results.json").read_text())["test"]["total"] == 6


@pytest.mark.slow
def test_no_test_leaves_the_test_splits_alone_and_the_report_says_so(genpool, films):
    arguments = ("train", "films.toml", "--data", "data", "--no-test", "--quiet", "--out")
    said = genpool(*arguments, "run").ok()
    assert said.out.startswith("dev accuracy:") and "test accuracy" not in said.out
    assert [path.name for path in (films / "run" / "predictions").iterdir()] == ["dev.tsv"]
    assert "| test | not scored |" in (films / "run" / "report.md").read_text()
    assert scores(films / "run").keys() == {"dev"}
    said = genpool(*arguments, "choice", "--select", "pooling.heads=1,3").ok()
    assert "test accuracy" not in said.out
    report, model = said.out.splitlines()[-2:]
    assert report == "report: choice/selection.md"
    chosen = model.removeprefix("model:  choice/pooling.heads=")[0]
    assert model == f"model:  choice/pooling.heads={chosen}/best (pooling.heads = {chosen})"
    assert not list((films / "choice").rglob("test.tsv"))
    assert "not scored (`--no-test`)" in (films / "choice" / "selection.md").read_text()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (f"training.seed={10**30}", "expected a whole number of 64 bits"),
        (f"training.seed={'[' * 5000}{']' * 5000}", "is nested too deeply"),
        (f"pooling.hidden_dim={10**12}", "the model would have"),
    ],
    ids=["a large integer", "deep nesting", "a huge width"],
)
def test_a_value_that_no_setting_can_have_is_answered_in_words(genpool, films, override, message):
    said = genpool("train", "films.toml", "--data", "data", "--set", override).refused(message)
    assert said.err.startswith("error: films.toml: ")
    assert not (films / "runs").exists()


QUICK = sets(["classifier.hidden_dim=4", "training.epochs=1"])


@pytest.fixture
def small_model(films: Path, sentence_encoder: SentenceEncoder) -> str:
    """The folder of a small encoder, beside the tables."""
    sentence_encoder.save_pretrained(films / "small")
    return "small"


def test_one_table_is_enough_and_the_rows_that_are_held_out_are_said(genpool, films, small_model):
    table = write_table(films / "one.tsv", reviews(40, 0))
    said = genpool("train", "texts", "--data", table, "--start", small_model, *QUICK).ok()
    assert "dev set: 4 rows held out of the training set" in said.err
    assert "words added" in said.err
    assert said.out.startswith("dev accuracy: ")
    model = TextClassifier.from_pretrained(films / "runs" / "texts" / "best")
    assert model.settings.encoder.name == "stacked-bilstm"


def test_frozen_parts_are_those_of_the_start_model(genpool, films, small_model):
    arguments = ("train", "texts", "--data", "data", "--start", small_model, *QUICK)
    said = genpool(*arguments, "--freeze", "encoder", "--out", "frozen", "--quiet").ok()
    assert said.err == "" and said.out.startswith("dev accuracy:")
    before = SentenceEncoder.from_pretrained(films / "small").encode(["A man sleeps."])
    trained = TextClassifier.from_pretrained(films / "frozen" / "best").encoder
    np.testing.assert_allclose(trained.encode(["A man sleeps."]), before, atol=1e-6)
    genpool(*arguments, "--freeze", "all", "--out", "wrong").refused("unknown start.freeze 'all'")


def test_scores_are_learned_and_correlations_reported(genpool, films, small_model):
    rows = [(f"{number % 5}", text, "a film") for number, (_, text) in enumerate(reviews(40, 0))]
    table = write_table(films / "pairs.tsv", rows, ("closeness", "sentence1", "sentence2"))
    arguments = ("train", "pairs", "--data", table, "--start", small_model, *QUICK)
    arguments += ("--score", "closeness")
    said = genpool(*arguments, "--task", "score", "--out", "scores").ok()
    assert re.match(r"dev Pearson: -?\d\.\d{4}, Spearman: -?\d\.\d{4}\n", said.out)
    results = scores(films / "scores")["dev"]
    assert set(results) == {"total", "pearson", "spearman"}
    report = (films / "scores" / "report.md").read_text()
    assert "| split | Spearman |" in report
    assert "confusion" not in report
    model = PairClassifier.from_pretrained(films / "scores" / "best")
    assert model.labels == ("0", "1", "2", "3", "4")
    assert model.predicts_scores
    said = genpool("evaluate", "scores/best", table).ok()
    assert said.out.split()[:3] == ["rows", "Pearson", "Spearman"]
    said = genpool("predict", "scores/best", "A good film.", "A film.")
    expected = model.predict_score([("A good film.", "A film.")])[0]
    assert said.out == f"score  {expected:.4g}\n"
    said = genpool(*arguments, "--out", "labels")
    assert said.code != 0
    assert "--task score" in said.err


FILMS = [("gut", "Ein schöner Film"), ("schlecht", "Nie wieder, so öde")] * 10
FILMS_CSV = "urteil;meinung\n" + "".join(f'{label};"{text}"\n' for label, text in FILMS)
COLUMNS = ("--first", "meinung", "--label", "urteil")


def test_a_table_of_a_spreadsheet_program_is_trained_on_and_evaluated(genpool, films, small_model):
    (films / "films.csv").write_bytes(FILMS_CSV.encode("cp1252"))
    asked = ("train", "texts", "--data", "films.csv", "--start", small_model, *COLUMNS, *QUICK)
    genpool(*asked).refused("films.csv, line 2: is not UTF-8", "--encoding cp1252")
    genpool(*asked, "--encoding", "cp1252").ok()
    said = genpool("evaluate", "runs/texts/best", "films.csv", "--encoding", "cp1252").ok()
    assert "of 20;" in said.out


def test_wrong_columns_are_told_before_training(genpool, films, small_model):
    (films / "films.csv").write_text(FILMS_CSV, encoding="utf-8")
    # A recipe that does not hold rows out by itself: its complaint about dev comes second.
    asked = ("train", "sst5", "--data", "films.csv", "--set", "embedding.frozen=false", *QUICK)
    genpool(*asked, "--first", "meinungen", "--label", "urteile").refused(
        "unknown column 'urteile'. Did you mean 'urteil'?",
        "unknown column 'meinungen'. Did you mean 'meinung'?",
    )
    assert "no dev set" in genpool(*asked, *COLUMNS).err
    (films / "films").mkdir()
    for name, text in {"train": FILMS_CSV, "dev": FILMS_CSV, "test": "label;text\nx;y\n"}.items():
        (films / "films" / f"{name}.csv").write_text(text, encoding="utf-8")
    genpool("train", "texts", "--data", "films", "--start", small_model, *COLUMNS, *QUICK).refused(
        "test.csv, line 1: unknown column 'urteil'"
    )
    assert not (films / "runs").exists()

"""genpool probe: poolings compared on a table, and the probes used afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from genpool.evaluation import read_predictions
from genpool.integrations.probing import AttentiveProbe
from tests.helpers.training_runs import write_table
from tests.integrations.probing.conftest import make_texts


@pytest.fixture
def folder(tmp_path: Path, rules_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a table of texts, and a small encoder."""
    (tmp_path / "encoder").symlink_to(rules_run / "best")
    write(tmp_path / "texts.tsv", 60, 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write(path: Path, rows: int, seed: int) -> None:
    path.parent.mkdir(exist_ok=True)
    texts, labels = make_texts(rows, np.random.default_rng(seed))
    write_table(path, zip(labels, texts, strict=True))


@pytest.mark.slow
def test_poolings_are_compared_and_kept(folder, genpool):
    said = genpool("probe", "--data", "texts.tsv", "--encoder", "encoder", "--out", "probes").ok()
    assert "12 of 60 rows were held out" in said.out
    report = (folder / "probes" / "report.md").read_text()
    assert report.strip() in said.out
    values = json.loads((folder / "probes" / "report.json").read_text())
    assert set(values["poolings"]) == {"mean", "max", "scalar", "generalized"}
    assert (values["train_texts"], values["test_texts"]) == (48, 12)
    for name in values["poolings"]:
        predictions = read_predictions(folder / "probes" / "predictions" / f"{name}.tsv")
        right = np.mean(np.array(predictions.gold) == np.array(predictions.predicted))
        assert values["poolings"][name]["accuracy"]["accuracy"] == pytest.approx(right)
    probe = AttentiveProbe.from_pretrained(folder / "probes" / "generalized")
    assert set(probe.predict(["the dog runs"])) <= {"the dog", "the man"}
    files = [f"probes/predictions/{name}.tsv" for name in ("generalized", "mean")]
    assert "12 rows" in genpool("evaluate", "--compare", *files).ok().out


def test_a_kept_probe_predicts_a_table(folder, genpool):
    options = ("--data", "texts.tsv", "--pooling", "mean", "--out", "probes")
    assert genpool("probe", "--encoder", "encoder", *options).code == 0
    (folder / "new.csv").write_text("text\nthe dog runs\na man sleeps\n")
    said = genpool("probe", "--data", "new.csv", "--use", "probes/mean", "-o", "labels.tsv").ok()
    assert "2 rows: labels.tsv" in said.out
    predictions = read_predictions(folder / "labels.tsv")
    probe = AttentiveProbe.from_pretrained(folder / "probes" / "mean")
    expected = probe.predict_proba(["the dog runs", "a man sleeps"])
    np.testing.assert_allclose(predictions.probabilities, expected, atol=1e-6)
    assert predictions.gold == (None, None)


def test_a_folder_with_test_rows_is_scored_on_them(folder, genpool):
    write(folder / "data" / "train.tsv", 30, 1)
    write(folder / "data" / "test.tsv", 20, 2)
    arguments = ("--data", "data", "--encoder", "encoder", "--pooling", "max")
    said = genpool("probe", *arguments).ok()
    assert "30 training texts, 20 test texts." in said.out
    assert "held out" not in said.out


def test_states_are_computed_once_for_all_runs(folder, genpool):
    arguments = ("probe", "--data", "texts.tsv", "--encoder", "encoder", "--pooling", "mean")
    assert genpool(*arguments, "--cache", "states").code == 0
    (states,) = folder.glob("states/*/rows.f16")
    before = states.stat()
    assert genpool(*arguments, "--cache", "states", "--seed", "1").code == 0
    assert states.stat().st_mtime_ns == before.st_mtime_ns
    assert not (folder / "cache").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--data", "texts.tsv", "--use", "probes/mean"), "belong together"),
        (("--data", "texts.tsv", "-o", "labels.tsv"), "belong together"),
        (("--data", "missing.tsv"), "missing.tsv"),
        (("--data", "texts.tsv", "--pooling", "gated"), "unknown pooling of a probe 'gated'"),
        (("--data", "texts.tsv", "--layers", "1,x"), "layers is '1,x'"),
        (("--data", "texts.tsv", "--layers", "all"), "only the last layer"),
        (("--data", "texts.tsv", "--encoder", "nowhere"), "there is no such folder"),
        (("--data", "pairs.tsv"), "a probe reads single texts"),
        (("--data", "texts.tsv", "--use", "encoder", "-o", "a.tsv"), "is not of a saved probe"),
    ],
    ids=str,
)
def test_mistakes_are_answered_in_words(folder, genpool, arguments, problem):
    (folder / "pairs.tsv").write_text(
        "label\tpremise\thypothesis\n" + "yes\ta dog\ta man\nno\ta man\ta dog\n" * 5
    )
    encoder = () if "--encoder" in arguments or "--use" in arguments else ("--encoder", "encoder")
    genpool("probe", *arguments, *encoder).refused(problem)

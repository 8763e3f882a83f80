"""Whole reproductions on the generated corpus: every cell is a real training run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from genpool.disk.lock import held_folder
from genpool.errors import FolderError, TrainingError
from genpool.reproduction.definitions import EXPERIMENTS, SCALES
from genpool.reproduction.ledger import Ledger
from genpool.reproduction.reproduction import Reproduction, reproduce
from genpool.reproduction.workers import run_cell, trained_epochs
from tests.helpers.commands import Command

from .records import done

trains_models = pytest.mark.reproduce
TINY = SCALES["tiny"]


def keys(folder: Path) -> list[str]:
    """The keys of the ledger's lines, which there are none of before the first."""
    path = folder / "cells.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [json.loads(line)["key"] for line in lines]


def scores(folder: Path) -> dict[str, dict[str, float]]:
    records = Ledger(folder / "cells.jsonl").records.values()
    return {record.key: dict(record.accuracy) for record in records}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("all") / "tiny"
    assert reproduce(["all"], folder, "tiny", jobs=2, show_progress=False) == []
    return folder


@trains_models
def test_all_cells_are_filled_and_none_is_run_twice(everything: Path) -> None:
    before = (everything / "cells.jsonl").read_bytes()
    assert reproduce(["all"], everything, "tiny", show_progress=False) == []
    assert (everything / "cells.jsonl").read_bytes() == before
    assert set(Counter(keys(everything)).values()) == {1}
    status = Reproduction(everything).status()
    assert status.startswith(f"scale tiny: {len(keys(everything))} models trained, 0 failed")
    assert "in all 0 models left" in status
    report = (everything / "report.md").read_text(encoding="utf-8")
    assert "not run yet" not in report and "not measured" not in report
    for experiment in EXPERIMENTS.values():
        assert f"## {experiment.title}" in report
    page = (everything / "report.html").read_text(encoding="utf-8")  # which needs no other file
    assert page.count("data:image/png;base64,") == 2
    assert 'src="figures' not in page and "<table>" in page
    records = Ledger(everything / "cells.jsonl").records.values()
    inactive = [record for record in records if record.cell["penalty"].startswith("parameter")]
    assert inactive and all(record.inactive for record in inactive)
    for record in records:  # heads are measured in every run with several
        if record.cell["system"] == "generalized" and "pooling.heads=1" not in str(record.cell):
            assert record.heads["heads_attention_distance_mean"] >= 0
            assert record.heads["heads_parameter_distance_mean"] > 0


@trains_models
def test_the_status_knows_all_cells_that_are_left(everything: Path, tmp_path: Path) -> None:
    lines = (everything / "cells.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    inactive = [line for line in lines if json.loads(line)["inactive"]]
    ledger = tmp_path / "cells.jsonl"
    for share in (0.0, 0.3, 0.7, 1.0):
        begun = list(dict.fromkeys([*inactive, *lines[: int(share * len(lines))]]))
        ledger.write_text("".join(begun), encoding="utf-8")
        assert Reproduction(tmp_path, "tiny").count_cells() == (len(begun), len(lines))
        assert ledger.read_text(encoding="utf-8") == "".join(begun), "nothing assumed is written"
    reproduction = Reproduction(tmp_path, "tiny")  # a cell that no table needs does not count
    reproduction.ledger.add(done(reproduction.plan.cell("yelp", "cbow", ("training.clip=9",), 0)))
    assert reproduction.count_cells() == (len(lines), len(lines))
    # A penalty is expected to be active until it is found inactive.
    ledger.unlink()
    more = (len(TINY.weights) - 1) * len(TINY.tasks)
    assert Reproduction(tmp_path, "tiny").count_cells() == (0, len(lines) + more)


@trains_models
def test_stopped_and_killed_it_ends_with_the_same_table(everything: Path, tmp_path: Path) -> None:
    """SIGTERM as in the background of a shell, where SIGINT is ignored; then kill -9, twice."""
    out = tmp_path / "stopped"
    start = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    start += "from genpool.cli import main; main()"
    options = ["reproduce", "figure3", "--scale", "tiny", "--out", str(out), "--jobs", "2"]
    command = [sys.executable, "-c", start, *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(out.glob("runs/*/checkpoints/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "stopped; the same command continues" in said and "Traceback" not in said
    for seconds in (2.0, 5.0):
        quiet = subprocess.DEVNULL
        killed = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
        time.sleep(seconds)
        before = keys(out)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        assert keys(out)[: len(before)] == before
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "continuing after step" in (out / "workers.log").read_text(encoding="utf-8")
    assert set(Counter(keys(out)).values()) == {1}
    whole = scores(everything)
    assert scores(out) == {key: whole[key] for key in keys(out)}


def test_a_folder_that_cannot_be_created_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file" / "out", tmp_path / ("a" * 5000)):
        with pytest.raises(FolderError, match=r"cannot be created: .*--out"):
            Reproduction(out, "small").begin()


def test_a_second_process_is_refused_and_says_who_holds_the_folder(tmp_path: Path) -> None:
    refused = pytest.raises(TrainingError, match=f"process {os.getpid()}.*--out")
    with held_folder(tmp_path, TrainingError), refused:
        reproduce(["figure3"], tmp_path, "tiny", show_progress=False)
    assert not (tmp_path / "cells.jsonl").exists()


def test_the_curve_of_a_run_is_placed_by_its_epochs() -> None:
    lines = [{"step": step, "epoch": epoch} for step, epoch in ((4, 0), (6, 1), (10, 1), (12, 2))]
    assert trained_epochs(lines) == [0.667, 1.0, 1.667, 2.0]
    assert trained_epochs([{"step": 4, "epoch": 0}, {"step": 8, "epoch": 0}]) == [0.5, 1.0]


def test_missing_data_marks_the_cells_and_the_exit_code(genpool: Command, tmp_path: Path) -> None:
    out = tmp_path / "small"
    command = ["reproduce", "figure3", "--scale", "small", "--data", str(tmp_path)]
    said = genpool(*command, "--out", str(out))
    assert said.code == 1
    assert "missing data" in said.err and "blogs-age" in said.err
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "## Cells that failed" in report and "missing data" in report
    assert "The learning rate could not be chosen" in report
    status = genpool("reproduce", "status", str(out)).out
    assert "0 models trained" in status and "failed   snli: max: missing data" in status


def test_a_cell_is_trained_once_and_its_record_is_read_from_its_run(tmp_path: Path) -> None:
    reproduction = Reproduction(tmp_path, "tiny")
    cell = reproduction.plan.cell("snli", "generalized", ("training.epochs=1",), 0, "attention 1")
    job = reproduction.make_job(cell)
    assert isinstance(job, dict)
    record = run_cell(job)
    assert (record["status"], record["key"], record["seconds"] > 0) == ("done", cell.key, True)
    assert record["dev_epochs"] == [1.0] and set(record["accuracy"]) == {"dev", "test"}
    again = run_cell(job)  # the run is there
    assert again == record
    job["cell"]["overrides"] = ["training.epoch=1"]
    assert "unknown setting 'training.epoch'" in run_cell(job)["reason"]


@trains_models
def test_a_cell_that_fails_leaves_the_others_alone(tmp_path: Path, monkeypatch) -> None:
    task = TINY.tasks["yelp"]
    rate = (*task.overrides, "training.learning_rate=1e30", "training.clip=0")
    monkeypatch.setitem(TINY.tasks, "yelp", replace(task, overrides=rate))
    out = tmp_path / "out"
    failures = reproduce(["table3"], out, "tiny", only="BiLSTM mean pooling", show_progress=False)
    assert len(failures) == 1
    assert failures[0].startswith("yelp: mean") and "nan" in failures[0].lower()
    records = Ledger(out / "cells.jsonl").records.values()
    assert [record.status for record in records] == ["failed", "done"]
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "| BiLSTM mean pooling | failed |" in report

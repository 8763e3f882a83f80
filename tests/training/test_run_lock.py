"""One folder, one run at a time; what a killed run left is no obstacle, and is removed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from genpool.disk.lock import HOLDER, LOCK, require_unheld
from genpool.errors import TrainingError
from genpool.training.preparation import prepare
from genpool.training.run import Run
from genpool.training.run_folder import RunFolder, run_lock
from tests.helpers.training_runs import (
    SMALL_RULES,
    metrics,
    outcome,
    run,
    sets,
    settings,
    start,
)

pytestmark = pytest.mark.usefixtures("no_pictures")


def hidden(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_in_one_folder_is_refused_and_the_first_is_not_disturbed(
    tables: Path, finished: Path, tmp_path: Path, monkeypatch: Any, resume: bool
) -> None:
    out, step, errors = tmp_path / "run", Run.step, []

    def second(self: Run, examples: Any) -> None:
        if self.state.step == 5:
            with pytest.raises(TrainingError) as error:
                run(tables, out, resume=resume)
            errors.append(str(error.value))
        step(self, examples)

    monkeypatch.setattr(Run, "step", second)
    run(tables, out)
    (message,) = errors
    assert f"{out} is in use: process {os.getpid()} on " in message
    assert "Wait until it has ended, or give another folder: --out" in message
    assert outcome(out) == outcome(finished)
    assert hidden(out) == []


def test_a_run_that_starts_while_another_reads_its_data_is_refused(
    tables: Path, finished: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """Both saw an empty folder; the slower one finds it taken, or finished."""
    out, place = tmp_path / "run", "genpool.training.loop.prepare"

    def slow(*arguments: Any) -> Any:
        monkeypatch.setattr(place, prepare)
        run(tables, out)
        return prepare(*arguments)

    monkeypatch.setattr(place, slow)
    with pytest.raises(TrainingError, match="holds a run that is finished"):
        run(tables, out)
    assert outcome(out) == outcome(finished)


def test_two_processes_in_one_folder(tmp_path: Path) -> None:
    out = tmp_path / "run"
    overrides = (*SMALL_RULES, "reader.sizes=[96, 24, 12]", "training.epochs=200")
    command = ("train", "rules", "--out", out, "--quiet", *sets(overrides))
    first = start(*command)
    try:
        while first.poll() is None and not (out / HOLDER).is_file():
            time.sleep(0.01)
        assert first.poll() is None
        second = start(*command)
        said, _ = second.communicate()
        assert second.returncode == 2, said
        assert f"{out} is in use: process {first.pid} on " in said
        assert "Traceback" not in said
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    # The killed process holds nothing any more: its folder can be used, and its lock was released.
    assert (out / HOLDER).is_file()
    require_unheld(out)
    with run_lock(out):
        assert f'"process": {os.getpid()}' in (out / HOLDER).read_text()


def test_the_lock_of_a_dead_process_does_not_block_the_next_run(
    tables: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / LOCK).touch()
    (out / HOLDER).write_text('{"process": 999999999, "host": "elsewhere", "since": "once"}')
    run(tables, out)
    assert outcome(out) == outcome(finished)
    assert hidden(out) == []


def test_a_run_that_is_stopped_releases_the_folder(
    tables: Path, finished: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    out, step = tmp_path / "run", Run.step

    def failing(self: Run, examples: Any) -> None:
        if self.state.step == 3:
            raise TrainingError("stopped")
        step(self, examples)

    monkeypatch.setattr(Run, "step", failing)
    with pytest.raises(TrainingError, match="stopped"):
        run(tables, out)
    monkeypatch.setattr(Run, "step", step)
    assert not (out / HOLDER).exists()
    run(tables, out, resume=True)
    assert len(metrics(out)) == 2
    assert outcome(out) == outcome(finished)


def test_an_unknown_holder_is_another_process(tmp_path: Path) -> None:
    with run_lock(tmp_path):
        for text in ("", "{}", "[]", "not JSON"):
            (tmp_path / HOLDER).write_text(text)
            with pytest.raises(TrainingError, match="in use: another process is writing a run"):
                RunFolder(tmp_path).check(settings(), resume=True)


def test_temporary_files_of_a_killed_run_are_removed_and_no_others(
    tables: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    folder = RunFolder(out)
    folder.begin(settings(), {"data": str(tables), "versions": {}} | ABOUT)
    left = [
        ".report.md.4711.tmp",
        ".results.json.0a1b2c3d-4711-12345678.tmp",
        ".confusion-dev.png.4711.tmp",
        ".learning-curve.png.0a1b2c3d-4711-12345678.tmp",
        "predictions/.dev.tsv.4711.tmp",
        "predictions/.test_matched.submission.csv.4711.tmp",
    ]
    theirs = [".notes.md.tmp", "thesis.tmp"]
    for name in (*left, *theirs):
        (out / name).write_text("half")
    run(tables, out, resume=True)
    assert not [name for name in left if (out / name).exists()]
    assert [name for name in theirs if (out / name).exists()] == theirs


ABOUT = {"processes": 1, "device": "cpu", "threads": 1, "machine": "x"}

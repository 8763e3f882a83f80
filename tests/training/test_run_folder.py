"""The folder of a run: one run at a time, and refusals that say what to do."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from genpool.disk.lock import HOLDER, held_folder, require_unheld
from genpool.errors import DataError, TrainingError
from genpool.training.loop import Run
from genpool.training.preparation import prepare
from genpool.training.run_folder import RunFolder
from tests.helpers.training_runs import SMALL_RULES, outcome, run, sets, settings, start, stopping

ABOUT = {"versions": {}, "processes": 1, "device": "cpu", "threads": 1}


def begun(path: Path) -> RunFolder:
    """The folder of a run that was killed at once."""
    path.mkdir()
    folder = RunFolder(path)
    folder.begin(settings(), {"data": "tables", **ABOUT})
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_what_is_no_run_is_refused_and_left_alone(tables, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    for out, problem in (
        (tmp_path, r"something that is not a run.*--out"),
        (tmp_path / "thesis.txt", r"is a file. Give a folder: --out"),
        (tmp_path / "thesis.txt" / "inside", "cannot be used"),
    ):
        with pytest.raises(TrainingError, match=problem):
            run(tables, out)
    assert contents(tmp_path) == {"thesis.txt": b"years of work"}


def test_another_run_is_refused_with_what_differs(tables, tmp_path):
    folder = begun(tmp_path / "run")
    before = contents(folder.path)
    expected = r"another run.*config\.toml.*\(training\.epochs is 2 there, 3 here\).*--out"
    for resume in (False, True):
        with pytest.raises(TrainingError, match=expected):
            run(tables, folder.path, "training.epochs=3", resume=resume)
    assert contents(folder.path) == before
    with pytest.raises(TrainingError, match=r"text\.max_length is None there, 9 here"):
        run(tables, folder.path, "text.max_length=9")
    several = [f"training.{name}=1" for name in ("epochs", "seed", "halvings", "patience", "clip")]
    with pytest.raises(TrainingError, match=r"; and 1 more\)"):
        run(tables, folder.path, *several, "text.max_length=9")
    folder.config.write_text("not TOML", encoding="utf-8")
    with pytest.raises(TrainingError, match=r"config\.toml differ\. Give"):
        run(tables, folder.path)


def test_a_finished_run_is_refused_with_the_remedy(tables, finished):
    before = contents(finished)
    for resume in (False, True):
        with pytest.raises(TrainingError, match=r"finished; its model is .*best.*--out"):
            run(tables, finished, resume=resume)
    assert contents(finished) == before


def test_a_run_that_is_not_finished_wants_to_be_resumed(tables, finished, tmp_path, capsys):
    out = begun(tmp_path / "run").path
    with pytest.raises(TrainingError, match=r"not finished. Continue it with --resume"):
        run(tables, out)
    run(tables, out, resume=True)
    assert "no checkpoint yet, starting from the beginning" in capsys.readouterr().err
    assert outcome(out) == outcome(finished)


def test_a_run_that_cannot_start_leaves_nothing_behind(tables, tmp_path):
    for mistake in ("data.dev=nowhere", "vectors.path=nowhere.txt", "reader.first=nowhere"):
        with pytest.raises(DataError, match="nowhere"):
            run(tables, tmp_path / "run", mistake)
        assert not (tmp_path / "run").exists()


def test_metrics_of_a_full_disk_are_told_with_the_remedy(tmp_path):
    folder, full = RunFolder(tmp_path), OSError(errno.ENOSPC, "No space left on device")
    folder.log({"step": 1})
    expected = pytest.raises(TrainingError, match=r"metrics\.jsonl cannot be written.*--resume")
    with stopping(os, "fsync", 1, full), expected:
        folder.log({"step": 2})


# --- Run lock -------------------------------------------------------------------------------------


def hidden(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_in_one_folder_is_refused_and_the_first_is_not_disturbed(
    tables, finished, tmp_path, monkeypatch, resume
):
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


def test_of_two_that_start_together_one_is_refused(tables, finished, tmp_path, monkeypatch):
    """Both saw an empty folder; the slower one finds it taken, or finished."""
    out, place = tmp_path / "run", "genpool.training.fitting.prepare"

    def slow(*arguments: Any) -> Any:
        monkeypatch.setattr(place, prepare)
        run(tables, out)
        return prepare(*arguments)

    monkeypatch.setattr(place, slow)
    with pytest.raises(TrainingError, match="holds a run that is finished"):
        run(tables, out)
    assert outcome(out) == outcome(finished)


@pytest.mark.slow
def test_two_processes_in_one_folder(tmp_path):
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
    with held_folder(out, TrainingError):
        assert f'"process": {os.getpid()}' in (out / HOLDER).read_text()


def test_an_unknown_holder_is_another_process(tmp_path: Path) -> None:
    with held_folder(tmp_path, TrainingError):
        for text in ("", "{}", "[]", "not JSON"):
            (tmp_path / HOLDER).write_text(text)
            with pytest.raises(TrainingError, match="in use: another process is writing there"):
                RunFolder(tmp_path).check(settings(), resume=True)


def test_temporary_files_of_a_killed_run_are_removed_and_no_others(tables, tmp_path):
    out = begun(tmp_path / "run").path
    left = [".results.json.0a1b2c3d-4711-12345678.tmp", ".report.md.4711.tmp"]
    left += [".learning-curve.png.0a1b2c3d-4711-12345678.tmp", "predictions/.dev.tsv.4711.tmp"]
    theirs = [".notes.md.tmp", "thesis.tmp"]
    for name in (*left, *theirs):
        (out / name).write_text("half")
    run(tables, out, resume=True)
    assert not [name for name in left if (out / name).exists()]
    assert [name for name in theirs if (out / name).exists()] == theirs

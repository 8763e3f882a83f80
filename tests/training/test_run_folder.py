"""The folder of a run: whose it is, and what is never written over."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from genpool.errors import DataError, TrainingError
from genpool.training import read_settings
from genpool.training.run_folder import RunFolder
from tests.helpers.training_runs import outcome, run, settings


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(
    tables: Path, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(TrainingError, match=r"something that is not a run.*--out"):
        run(tables, tmp_path)
    with pytest.raises(TrainingError, match="something that is not a run"):
        run(tables, tmp_path, resume=True)
    assert contents(tmp_path) == {"thesis.txt": b"years of work"}


def test_a_file_in_place_of_the_folder_is_refused(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(TrainingError, match=r"is a file. Give a folder: --out"):
        run(tables, tmp_path / "run")
    with pytest.raises(TrainingError, match="cannot be created"):
        run(tables, tmp_path / "run" / "inside")
    assert (tmp_path / "run").read_text() == "a file"


@pytest.mark.parametrize("resume", [False, True])
def test_another_run_is_refused_with_what_differs(
    tables: Path, tmp_path: Path, resume: bool
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.begin(settings(), {"data": str(tables)})
    before = contents(folder.path)
    expected = r"another run.*config\.toml.*\(training\.epochs is 2 there, 3 here\).*--out"
    with pytest.raises(TrainingError, match=expected):
        run(tables, folder.path, "training.epochs=3", resume=resume)
    assert contents(folder.path) == before


def test_settings_that_only_one_side_has_are_named_and_many_are_counted(
    tables: Path, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.begin(settings(), {"data": str(tables)})
    with pytest.raises(TrainingError, match=r"text\.max_length is None there, 9 here"):
        run(tables, folder.path, "text.max_length=9")
    several = [f"training.{name}=1" for name in ("epochs", "seed", "halvings", "patience", "clip")]
    with pytest.raises(TrainingError, match=r"; and 1 more\)"):
        run(tables, folder.path, *several, "text.max_length=9")
    folder.config.write_text("not TOML", encoding="utf-8")
    with pytest.raises(TrainingError, match=r"config\.toml differ\. Give"):
        run(tables, folder.path)


@pytest.mark.parametrize("resume", [False, True])
def test_a_finished_run_is_refused_with_the_remedy(
    tables: Path, finished: Path, resume: bool
) -> None:
    before = contents(finished)
    with pytest.raises(TrainingError, match=r"finished; its model is .*best.*--out"):
        run(tables, finished, resume=resume)
    assert contents(finished) == before


def test_a_run_that_is_not_finished_wants_to_be_resumed(
    tables: Path, finished: Path, tmp_path: Path, no_pictures, capsys
) -> None:
    out = tmp_path / "run"
    folder = RunFolder(out)
    folder.begin(settings(), {"data": str(tables), "versions": {}} | about())
    with pytest.raises(TrainingError, match=r"not finished. Continue it with --resume"):
        run(tables, out)
    run(tables, out, resume=True)
    assert "no checkpoint yet, starting from the beginning" in capsys.readouterr().err
    assert outcome(out) == outcome(finished)


def about() -> dict[str, object]:
    return {"processes": 1, "device": "cpu", "threads": 1, "machine": "x"}


def test_an_empty_folder_may_be_used(tables: Path, tmp_path: Path, no_pictures) -> None:
    run(tables, tmp_path, "training.epochs=1")
    assert (tmp_path / "report.md").is_file()


@pytest.mark.parametrize(
    "mistake",
    ["data.dev=nowhere", "vectors.path=nowhere.txt", "reader.first=nowhere"],
)
def test_a_run_that_cannot_start_leaves_nothing_behind(
    tables: Path, tmp_path: Path, mistake: str
) -> None:
    with pytest.raises(DataError, match="nowhere"):
        run(tables, tmp_path / "run", mistake)
    assert not (tmp_path / "run").exists()


def test_settings_are_written_whole_and_read_back_equal(finished: Path) -> None:
    assert read_settings((finished / "config.toml").read_text()) == settings()


def test_metrics_of_a_full_disk_are_told_with_the_remedy(tmp_path: Path, monkeypatch) -> None:
    folder = RunFolder(tmp_path)
    length = folder.log({"step": 1})

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("genpool.training.run_folder.os.fsync", full)
    with pytest.raises(TrainingError, match=r"metrics\.jsonl cannot be written.*--resume"):
        folder.log({"step": 2})
    monkeypatch.undo()
    folder.cut_metrics(length)
    assert folder.metric_lines() == [{"step": 1}]


def test_lines_after_a_checkpoint_are_forgotten(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    lengths = [folder.log({"step": step}) for step in (1, 2, 3)]
    folder.cut_metrics(lengths[1])
    assert folder.metric_lines() == [{"step": 1}, {"step": 2}]
    folder.cut_metrics(0)
    assert folder.metric_lines() == []
    assert RunFolder(tmp_path / "nothing").metric_lines() == []


def test_where_the_data_is_and_the_versions_are_written(finished: Path, tables: Path) -> None:
    import torch

    about_run = json.loads((finished / "run.json").read_text())
    assert about_run["data"] == str(tables)
    assert about_run["processes"] == 1
    # A build may name itself 2.9.0+cu128 and be installed as 2.9.0.
    assert torch.__version__.startswith(about_run["versions"]["torch"])
    assert about_run["versions"].keys() >= {"python", "genpool", "numpy", "accelerate"}

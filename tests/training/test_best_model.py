"""When a run writes its best model: seldom while evaluations follow quickly, and never too late."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from genpool.errors import Interrupted
from genpool.saving import storage
from genpool.saving.saved_model import SavedModel
from genpool.training.loop import Run
from genpool.training.state import trained_weights
from tests.helpers.training_runs import outcome, run

pytestmark = pytest.mark.usefixtures("no_pictures")
STEPS_PER_EPOCH = 6  # 48 rows in batches of 8
Evaluated = list[dict[str, torch.Tensor]]
FIRST_STEP_OF_EPOCH_4 = 3 * STEPS_PER_EPOCH + 1


@pytest.fixture(autouse=True)
def quick_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the whole run took a moment, however busy the machine is."""
    monkeypatch.setattr("genpool.training.loop.BEST_MODEL_SECONDS", math.inf)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Evaluated:
    """The weights at every evaluation, each of which is better than the one before."""
    seen: Evaluated = []

    def better(self: Run) -> dict[str, float]:
        seen.append(trained_weights(self.model))
        return {"dev_accuracy": self.state.step / 1000}

    monkeypatch.setattr(Run, "_dev_metrics", better)
    return seen


def before_step(patch: pytest.MonkeyPatch, number: int, act: Callable[[Run], None]) -> None:
    """Calls `act` before the step of that number."""
    step = Run.step

    def stepping(self: Run, examples: Any) -> None:
        if self.state.step + 1 == number:
            act(self)
        step(self, examples)

    patch.setattr(Run, "step", stepping)


def press_ctrl_c(_: Run) -> None:
    os.kill(os.getpid(), signal.SIGINT)


class Killed(BaseException):
    """As good as a kill: nothing in the package catches it."""


def kill(_: Run) -> None:
    raise Killed


def has_weights(out: Path, expected: dict[str, torch.Tensor]) -> bool:
    best = load_file(out / "best" / storage.WEIGHTS)
    return all(torch.equal(best[name], weight) for name, weight in expected.items())


@pytest.mark.parametrize(("seconds", "count"), [(math.inf, 1), (0.0, 4)])
def test_it_is_written_once_in_a_while_and_at_the_end(
    tables: Path, tmp_path: Path, monkeypatch: Any, evaluated: Evaluated, seconds: float, count: int
) -> None:
    written: list[str] = []  # the models, by the names of their folders
    save = SavedModel.save_pretrained

    def counted(self: SavedModel, path: Path) -> None:
        written.append(path.name)
        save(self, path)

    monkeypatch.setattr(SavedModel, "save_pretrained", counted)
    monkeypatch.setattr("genpool.training.loop.BEST_MODEL_SECONDS", seconds)
    run(tables, tmp_path / "run", "training.epochs=4")
    assert written == ["best"] * count + ["last", "best"]
    assert len(evaluated) == 4 and has_weights(tmp_path / "run", evaluated[3])


def test_ctrl_c_leaves_the_best_model_and_the_run_continues_to_the_same_end(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: Evaluated
) -> None:
    run(tables, tmp_path / "whole", "training.epochs=5")
    with monkeypatch.context() as patch:
        before_step(patch, FIRST_STEP_OF_EPOCH_4, press_ctrl_c)
        with pytest.raises(Interrupted):
            run(tables, tmp_path / "run", "training.epochs=5")
    assert has_weights(tmp_path / "run", evaluated[2])
    run(tables, tmp_path / "run", "training.epochs=5", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_what_a_kill_left_unwritten_is_written_by_the_next_stop(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: Evaluated
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        before_step(patch, FIRST_STEP_OF_EPOCH_4, kill)
        with pytest.raises(Killed):
            run(tables, out, "training.epochs=5")
    assert has_weights(out, evaluated[0]) and not has_weights(out, evaluated[2])
    with monkeypatch.context() as patch:
        before_step(patch, FIRST_STEP_OF_EPOCH_4, press_ctrl_c)
        with pytest.raises(Interrupted):
            run(tables, out, "training.epochs=5", resume=True)
    assert has_weights(out, evaluated[2])


def test_a_stop_before_the_first_evaluation_writes_none(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, resume in ((2, False), (3, True)):
        with monkeypatch.context() as patch:
            before_step(patch, number, press_ctrl_c)
            with pytest.raises(Interrupted):
                run(tables, tmp_path / "run", resume=resume)
    assert not (tmp_path / "run" / "best").exists()

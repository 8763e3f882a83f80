"""When a run writes its best model: seldom while evaluations follow quickly, and never too late."""

from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from genpool.errors import Interrupted
from genpool.saving import storage
from genpool.saving.saved_model import SavedModel
from genpool.training.loop import Run
from genpool.training.state import trained_weights
from tests.helpers.training_runs import Killed, outcome, run, stopping

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


def has_weights(out: Path, expected: dict[str, torch.Tensor]) -> bool:
    best = load_file(out / "best" / storage.WEIGHTS)
    return all(torch.equal(best[name], weight) for name, weight in expected.items())


@pytest.mark.parametrize(("seconds", "count"), [(math.inf, 1), (0.0, 4)])
def test_it_is_written_once_in_a_while_and_at_the_end(
    tables, tmp_path, monkeypatch, evaluated, seconds, count
):
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


@pytest.mark.parametrize("killed", [False, True])
def test_ctrl_c_writes_it_also_what_a_kill_left_unwritten(tables, tmp_path, evaluated, killed):
    out, at = tmp_path / "run", FIRST_STEP_OF_EPOCH_4
    run(tables, tmp_path / "whole", "training.epochs=5")
    if killed:
        with stopping(Run, "step", at), pytest.raises(Killed):
            run(tables, out, "training.epochs=5")
        assert has_weights(out, evaluated[0]) and not has_weights(out, evaluated[2])
        at = 1
    with stopping(Run, "step", at, signal.SIGINT), pytest.raises(Interrupted):
        run(tables, out, "training.epochs=5", resume=killed)
    assert has_weights(out, evaluated[2])
    run(tables, out, "training.epochs=5", resume=True)
    assert outcome(out) == outcome(tmp_path / "whole")


def test_a_stop_before_the_first_evaluation_writes_none(tables, tmp_path):
    for at, resume in ((2, False), (1, True)):
        with stopping(Run, "step", at, signal.SIGINT), pytest.raises(Interrupted):
            run(tables, tmp_path / "run", resume=resume)
    assert not (tmp_path / "run" / "best").exists()

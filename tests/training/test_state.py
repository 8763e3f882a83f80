"""The schedule of a run, and checkpoints: whole or not there, and never the only one."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from genpool.errors import TrainingError
from genpool.training import run_folder
from genpool.training.run_folder import load_checkpoint, save_checkpoint
from genpool.training.settings import TrainingSettings
from genpool.training.state import SUMS, RunState, rate_factors

BEST, HALVE, WORSE = "best", "restore", "worse"


def test_below_the_best_restores_and_halves_and_a_tie_counts_as_an_improvement():
    settings = TrainingSettings(schedule="restore-halve", halvings=8)
    schedule = RunState(learning_rate=0.8)
    story = [
        (0.50, BEST, 0.8),
        (0.60, BEST, 0.8),
        (0.60, BEST, 0.8),  # a tie
        (0.59, HALVE, 0.4),
        (0.60, BEST, 0.4),  # a tie with the best so far, and the rate stays
        (0.30, HALVE, 0.2),
        (0.55, HALVE, 0.1),  # better than the one before, but not than the best
        (0.61, BEST, 0.1),
        (0.60, HALVE, 0.05),  # what was a best is one no longer
    ]
    for accuracy, decision, rate in story:
        assert schedule.after(accuracy, settings) == decision
        assert schedule.learning_rate == pytest.approx(rate, rel=1e-12)
    assert schedule.best == 0.61
    assert schedule.halvings == 4


def test_it_stops_at_the_eighth_halving_and_patience_counts_evaluations_in_a_row():
    schedule = RunState(learning_rate=4e-4)  # the defaults are those of the released program
    story = [(0.7, BEST), *[(0.6, HALVE), (0.7, BEST)] * 7, (0.6, HALVE)]
    constant = RunState(learning_rate=0.3)
    patient = [(0.5, BEST), (0.4, WORSE), (0.5, BEST), (0.4, WORSE), (0.3, WORSE)]
    waiting = TrainingSettings(schedule="constant", patience=2)
    for state, steps, settings in (
        (schedule, story, TrainingSettings()),
        (constant, patient, waiting),
    ):
        for accuracy, decision in steps:
            assert not state.stopped
            assert state.after(accuracy, settings) == decision
        assert state.stopped
    assert schedule.learning_rate == pytest.approx(4e-4 / 2**8, rel=1e-12)


def test_the_linear_schedule_rises_to_its_rate_and_falls_to_zero():
    settings = TrainingSettings(schedule="linear", warmup=0.2)
    rates = [0.8 * factor for factor in rate_factors(10, settings)]
    # Two steps up, then eight equal steps down, of which the last would be at zero.
    by_hand = [0.4, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert rates == pytest.approx(by_hand, rel=1e-12)


def test_the_linear_schedule_prefers_later_weights_within_a_standard_error():
    settings = TrainingSettings(schedule="linear")
    schedule = RunState(learning_rate=0.8)
    story = [(0.90, BEST), (0.85, BEST), (0.79, WORSE), (0.80, BEST), (0.95, BEST), (0.84, WORSE)]
    assert [schedule.after(score, settings, 0.1) for score, _ in story] == [d for _, d in story]
    assert schedule.best == 0.95
    constant = RunState(learning_rate=0.8, best=0.9)
    assert constant.after(0.85, TrainingSettings(schedule="constant"), 0.1) == WORSE


# --- Checkpoint -----------------------------------------------------------------------------------


def tensors(seed: int) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    return {
        "model.a": torch.randn(3, 4, generator=random),
        "model.b": torch.randn(5, generator=random).bfloat16(),
        "adam.0.step": torch.tensor(7.0),
        "model.turned": torch.randn(2, 3, generator=random).T,
        "model.odd": torch.tensor([float("nan"), -0.0, float("inf"), 1e-45]),
    }


def saved(folder: Path, *steps: int) -> Path:
    for step in steps:
        save_checkpoint(folder, step, {"step": step}, tensors(step))
    return folder


def load(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor], list[str]]:
    loaded = load_checkpoint(folder)
    assert loaded is not None
    return loaded


def steps(folder: Path) -> list[int]:
    """The steps of all that is in the folder of checkpoints."""
    return sorted(int(path.stem.removeprefix("step-")) for path in folder.iterdir())


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.dim() else b""


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    save_checkpoint(tmp_path, 12, {"loss": 0.1 + 0.2, "none": None}, tensors(0))
    state, loaded, warnings = load(tmp_path)
    assert (state, warnings) == ({"loss": 0.1 + 0.2, "none": None}, [])
    assert loaded.keys() == tensors(0).keys()
    for name, tensor in tensors(0).items():
        assert (loaded[name].dtype, loaded[name].shape) == (tensor.dtype, tensor.shape)
        assert bits(loaded[name]) == bits(tensor)
    assert loaded["adam.0.step"] == 7


def test_the_state_of_a_run_comes_back_as_it_was(tmp_path):
    state = RunState(
        learning_rate=1e-3 / 3,
        best=0.7,
        halvings=2,
        worse_in_a_row=1,
        data=2**32 - 1,
        epoch=3,
        step_in_epoch=5,
        step=41,
        lines=[{"train_loss": 2 / 3, "peak_memory_mb": None}],
        sums={**dict.fromkeys(SUMS, 0.0), "loss": 1 / 3, "seconds": 0.1},
        closest=math.inf,
    )
    save_checkpoint(tmp_path, 41, asdict(state), tensors(0))
    assert RunState(**load(tmp_path)[0]) == state


def test_the_newest_is_used_and_only_two_are_kept(tmp_path):
    saved(tmp_path, 9, 10, 200, 1000)
    assert steps(tmp_path) == [200, 1000]
    assert load(tmp_path)[0] == {"step": 1000}


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[:-1],
    "a flipped bit": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "another digit of the state": lambda data: data.replace(rb"\"step\": 2", rb"\"step\": 6"),
    "another tensor's name": lambda data: data.replace(b"model.a", b"model.c"),
    "another type": lambda data: data.replace(b'"F32"', b'"I32"'),
    "no checksum": lambda data: data.replace(b'"checksum"', b'"checksun"'),
    "half a header": lambda data: data[:20],
    "empty": lambda data: b"",
}


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    assert DAMAGES[how](data) != data
    path.write_bytes(DAMAGES[how](data))


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_recognised_and_the_one_before_it_used(tmp_path, how):
    saved(tmp_path, 1, 2)
    damage(tmp_path / "step-000000002.safetensors", how)
    state, loaded, (warning,) = load(tmp_path)
    assert state == {"step": 1}
    assert bits(loaded["model.a"]) == bits(tensors(1)["model.a"])
    assert warning.startswith("step-000000002 cannot be used (")
    assert warning.endswith("using the previous one")


def test_two_damaged_checkpoints_are_an_error_with_a_remedy(tmp_path):
    for path in saved(tmp_path, 1, 2).iterdir():
        damage(path, "truncated")
    with pytest.raises(TrainingError, match=r"no checkpoint can be used.*0002.*0001.*again"):
        load_checkpoint(tmp_path)


def test_a_full_disk_leaves_the_checkpoints_that_were_there(tmp_path, monkeypatch):
    assert load_checkpoint(tmp_path) is None
    saved(tmp_path, 1, 2)

    def full(tensors, path, metadata) -> None:
        Path(path).write_bytes(b"half a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "save_file", full)
        with pytest.raises(TrainingError, match=r"step 3 could not.*No space left.*--resume"):
            save_checkpoint(tmp_path, 3, {"step": 3}, tensors(3))
    assert steps(tmp_path) == [1, 2]
    assert load(saved(tmp_path, 3))[::2] == ({"step": 3}, [])


def test_what_a_kill_left_half_written_is_no_checkpoint_and_not_in_the_way(tmp_path):
    saved(tmp_path, 1)
    (tmp_path / ".step-000000002.safetensors.00000000-1-ab.tmp").write_bytes(b"half a file")
    assert load(tmp_path)[::2] == ({"step": 1}, [])
    assert load(saved(tmp_path, 2))[::2] == ({"step": 2}, [])

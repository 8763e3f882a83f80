"""Checkpoints: whole or not there, and never the only one when a new one is written."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
import torch

from genpool.errors import TrainingError
from genpool.training import state as state_module
from genpool.training.heads import PenaltyMonitor
from genpool.training.state import RunState, Schedule, Sums, load_checkpoint, save_checkpoint


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


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.dim() else b""


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 12, {"loss": 0.1 + 0.2, "none": None}, tensors(0))
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.state == {"loss": 0.1 + 0.2, "none": None}
    assert loaded.warnings == []
    assert loaded.tensors.keys() == tensors(0).keys()
    for name, tensor in tensors(0).items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert loaded.tensors[name].shape == tensor.shape
        assert bits(loaded.tensors[name]) == bits(tensor)
    assert loaded.tensors["adam.0.step"] == 7


def test_the_state_of_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    from dataclasses import asdict

    state = RunState(
        Schedule(1e-3 / 3, best=0.7, halvings=2, worse_in_a_row=1),
        data=2**32 - 1,
        epoch=3,
        step_in_epoch=5,
        step=41,
        metrics_length=1234,
        sums=Sums(loss=1 / 3, seconds=0.1),
        monitor=PenaltyMonitor(steps=2, term=0.3),  # its smallest distance is infinite
    )
    save_checkpoint(tmp_path, 41, asdict(state), tensors(0))
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert RunState.from_dict(loaded.state) == state


def test_the_newest_is_used_and_only_two_are_kept(tmp_path: Path) -> None:
    saved(tmp_path, 9, 10, 200, 1000)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "step-000000200",
        "step-000001000",
    ]
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.state == {"step": 1000}


def test_the_same_step_can_be_saved_again(tmp_path: Path) -> None:
    saved(tmp_path, 5)
    save_checkpoint(tmp_path, 5, {"step": "again"}, tensors(1))
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.state == {"step": "again"}


def test_no_checkpoint_is_not_an_error(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path / "nothing") is None
    assert load_checkpoint(tmp_path) is None


def truncate(folder: Path) -> None:
    path = folder / "state.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_bit(folder: Path) -> None:
    path = folder / "state.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def empty_the_tensors(folder: Path) -> None:
    (folder / "state.safetensors").write_bytes(b"")


def cut_the_state(folder: Path) -> None:
    path = folder / "state.json"
    path.write_text(path.read_text()[:-4])


def change_a_digit_of_the_state(folder: Path) -> None:
    path = folder / "state.json"
    changed = path.read_text().replace('"step": 2', '"step": 6').replace('"step": 1', '"step": 5')
    assert changed != path.read_text()
    path.write_text(changed)


def remove_the_state(folder: Path) -> None:
    (folder / "state.json").unlink()


def remove_the_tensors(folder: Path) -> None:
    (folder / "state.safetensors").unlink()


def empty_the_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


DAMAGES = [
    truncate,
    flip_a_bit,
    empty_the_tensors,
    cut_the_state,
    change_a_digit_of_the_state,
    remove_the_state,
    remove_the_tensors,
    empty_the_folder,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_recognised_and_the_one_before_it_used(
    tmp_path: Path, damage
) -> None:
    saved(tmp_path, 1, 2)
    damage(tmp_path / "step-000000002")
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.state == {"step": 1}
    assert bits(loaded.tensors["model.a"]) == bits(tensors(1)["model.a"])
    (warning,) = loaded.warnings
    assert warning.startswith("step-000000002 cannot be used (")
    assert warning.endswith("using the previous one")


@pytest.mark.parametrize("damage", DAMAGES)
def test_two_damaged_checkpoints_are_an_error_with_a_remedy(tmp_path: Path, damage) -> None:
    saved(tmp_path, 1, 2)
    damage(tmp_path / "step-000000001")
    truncate(tmp_path / "step-000000002")
    with pytest.raises(TrainingError) as error:
        load_checkpoint(tmp_path)
    for words in ("no checkpoint can be used", "step-000000001", "step-000000002", "again"):
        assert words in str(error.value)


def test_a_full_disk_leaves_the_checkpoints_that_were_there(tmp_path: Path, monkeypatch) -> None:
    saved(tmp_path, 1, 2)

    def full(tensors, path) -> None:
        Path(path).write_bytes(b"half a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(state_module, "save_file", full)
    with pytest.raises(TrainingError, match=r"step 3 could not.*No space left.*--resume"):
        save_checkpoint(tmp_path, 3, {"step": 3}, tensors(3))
    monkeypatch.undo()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "step-000000001",
        "step-000000002",
    ]
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.state == {"step": 2}
    assert loaded.warnings == []
    saved(tmp_path, 3)
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.state == {"step": 3}


def test_what_a_kill_left_half_written_is_no_checkpoint_and_not_in_the_way(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    (tmp_path / ".unfinished").mkdir()
    (tmp_path / ".unfinished" / "state.safetensors").write_bytes(b"half a file")
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.state == {"step": 1}
    assert loaded.warnings == []
    saved(tmp_path, 2)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "step-000000001",
        "step-000000002",
    ]

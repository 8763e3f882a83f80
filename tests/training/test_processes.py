"""Two processes, and batches in parts, give the weights of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from genpool.recipes import recipe_text
from genpool.training import read_settings, train
from genpool.training.loop import step_loss
from genpool.training.preparation import prepare
from tests.helpers.training_runs import SMALL_RULES, metrics, sets, start

#: two processes on this machine, on no fixed port
TORCHRUN = ("-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone")
#: 27 rows in batches of 13: the last batch of an epoch has one row, and one process has none of it
OVERRIDES = (
    *SMALL_RULES,
    "reader.sizes=[27, 9, 6]",
    "training.batch_size=13",
    "training.epochs=4",
    "embedding.dropout=0",
    "classifier.dropout=0",
)
PENALTIES = (pytest.param("parameter", marks=pytest.mark.slow), "embedding")


def run(out: Path, *more: str) -> Path:
    settings = read_settings(recipe_text("rules"), (*OVERRIDES, *more))
    train(settings, None, out, show_progress=False)
    return out


def run_both(place: Path, *more: str, parts: tuple[str, ...] = ()) -> tuple[Path, Path]:
    """The folders of the same run in one process and in two."""
    overrides, two = (*OVERRIDES, *more, *parts), place / "two"
    process = start("train", "rules", "--out", two, *sets(overrides), launcher=TORCHRUN)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert said.count("dev accuracy:") == 1  # one of them speaks
    return run(place / "one", *more), two


@pytest.fixture(scope="module", params=PENALTIES)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("processes")
    return run_both(place, f"penalty.name={request.param}", "penalty.threshold=3")


def weights(out: Path, model: str = "last") -> dict[str, np.ndarray]:
    return load_file(out / model / "model.safetensors")


def require_close(first: Path, second: Path, model: str = "last") -> None:
    expected, actual = weights(first, model), weights(second, model)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert np.abs(actual[name] - value).max() <= 1e-5, name


def test_two_processes_give_the_weights_and_metrics_of_one(runs):
    for model in ("best", "last"):
        require_close(runs[0], runs[1], model)
    # Training moved the weights much further.
    settings = read_settings((runs[0] / "config.toml").read_text())
    before, after = prepare(settings, None).model.state_dict(), weights(runs[1])
    assert max(np.abs(after[name] - value.numpy()).max() for name, value in before.items()) > 1e-2
    require_close_metrics(*runs)


def require_close_metrics(first: Path, second: Path) -> None:
    one, two = metrics(first), metrics(second)
    assert len(one) == len(two) == 4
    for expected, line in zip(one, two, strict=True):
        assert {"penalty", "penalty_active", "penalty_distance_min"} <= line.keys()
        # A quotient of small gradients magnifies the rounding in which the two runs differ.
        share = "penalty_gradient_share"
        assert line.pop(share) == pytest.approx(expected.pop(share), rel=1e-3)
        assert line == pytest.approx(expected, rel=1e-4)
        for exact in ("step", "epoch", "train_accuracy", "dev_accuracy", "learning_rate"):
            assert line[exact] == expected[exact]


@pytest.mark.parametrize("joined", [True, False])
def test_a_process_of_several_ends_without_finalizing_the_interpreter(tmp_path, joined):
    """Finalizing could abort it: threads of gloo outlive the process group."""
    join = f"'gloo', init_method='file://{tmp_path}/store', rank=0, world_size=1"
    program = f"""
import atexit, torch
from genpool.training.state import end_process_group
if {joined}: torch.distributed.init_process_group({join})
atexit.register(print, 'finalized')
print('done')
end_process_group()
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == (["done"] if joined else ["done", "finalized"])


# --- Accumulate -----------------------------------------------------------------------------------
#: 13 rows a step in 4 parts of 3 or 4; the last batch of an epoch has a single row
PARTS = "training.accumulate=4"


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_batch_in_parts_gives_the_weights_and_metrics_of_the_batch(tmp_path, penalty):
    more = (f"penalty.name={penalty}", "penalty.threshold=3")
    whole, parts = run(tmp_path / "whole", *more), run(tmp_path / "parts", PARTS, *more)
    require_close(whole, parts)
    require_close_metrics(whole, parts)


@pytest.mark.slow
def test_two_processes_with_parts_give_the_weights_of_one(tmp_path):
    require_close(*run_both(tmp_path, parts=(PARTS,)))


def test_every_part_is_computed_by_itself(tmp_path, monkeypatch):
    sizes: list[int] = []

    def watched(model: Any, output: Any, *more: Any) -> Any:
        sizes.append(len(output.logits))
        return step_loss(model, output, *more)

    monkeypatch.setattr("genpool.training.loop.step_loss", watched)
    run(tmp_path / "whole", "training.epochs=1")
    whole = sizes.copy()
    sizes.clear()
    run(tmp_path / "parts", "training.epochs=1", PARTS)
    assert sum(sizes) == sum(whole)
    assert max(sizes) * 3 <= max(whole) + 2
    assert len(sizes) == 2 * 4 + 1

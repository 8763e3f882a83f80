"""Two processes are one: torchrun gives the model that a single process gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from genpool.recipes import recipe_text
from genpool.training import read_settings, train
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
PENALTIES = ("parameter", "embedding")


def run_both(place: Path, *more: str) -> tuple[Path, Path]:
    """The folders of the same run in one process and in two."""
    overrides = (*OVERRIDES, *more)
    one, two = place / "one", place / "two"
    train(read_settings(recipe_text("rules"), overrides), None, one, show_progress=False)
    process = start("train", "rules", "--out", two, *sets(overrides), launcher=TORCHRUN)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert said.count("dev accuracy:") == 1  # one of them speaks
    return one, two


@pytest.fixture(scope="module", params=PENALTIES)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("processes")
    return run_both(place, f"penalty.name={request.param}", "penalty.threshold=3")


def test_two_processes_give_the_weights_of_one(runs: tuple[Path, Path]) -> None:
    for model in ("best", "last"):
        one, two = (load_file(out / model / "model.safetensors") for out in runs)
        assert one.keys() == two.keys()
        for name, expected in one.items():
            assert np.abs(two[name] - expected).max() <= 1e-5, name


def test_training_moved_the_weights_much_further_than_the_two_differ(
    runs: tuple[Path, Path],
) -> None:
    from genpool.training.preparation import prepare

    settings = read_settings((runs[0] / "config.toml").read_text())
    before = prepare(settings, None).model.state_dict()
    after = load_file(runs[1] / "last" / "model.safetensors")
    moved = max(np.abs(after[name] - weight.numpy()).max() for name, weight in before.items())
    assert moved > 1e-2


def test_two_processes_write_the_metrics_of_one(runs: tuple[Path, Path]) -> None:
    one, two = map(metrics, runs)
    assert len(one) == len(two) == 4
    for expected, line in zip(one, two, strict=True):
        assert line.keys() == expected.keys()
        assert {"penalty", "penalty_active", "penalty_distance_min"} <= line.keys()
        # A quotient of small gradients magnifies the rounding in which the two runs differ.
        share = "penalty_gradient_share"
        assert line.pop(share) == pytest.approx(expected.pop(share), rel=1e-3)
        assert line == pytest.approx(expected, rel=1e-4)
        for exact in ("step", "epoch", "train_accuracy", "dev_accuracy", "learning_rate"):
            assert line[exact] == expected[exact]


def test_two_processes_leave_one_folder_like_that_of_one(runs: tuple[Path, Path]) -> None:
    one, two = (sorted(str(path.relative_to(out)) for path in out.rglob("*")) for out in runs)
    assert one == two
    assert (runs[1] / "run.json").read_text().count('"processes": 2') == 1


@pytest.mark.parametrize("joined", [True, False])
def test_a_process_of_several_ends_without_finalizing_the_interpreter(
    tmp_path: Path, joined: bool
) -> None:
    """Finalizing could abort it: threads of gloo outlive the process group."""
    join = f"'gloo', init_method='file://{tmp_path}/store', rank=0, world_size=1"
    program = f"""
import atexit, torch
from genpool.training.loop import end_process_group
if {joined}: torch.distributed.init_process_group({join})
atexit.register(print, 'finalized')
print('done')
end_process_group()
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == (["done"] if joined else ["done", "finalized"])

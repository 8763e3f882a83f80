"""Two processes, and batches in parts, give the weights of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from genpool.errors import Interrupted
from genpool.recipes import recipe_text
from genpool.training import read_settings, train
from genpool.training.run import Run
from tests.helpers.training_runs import SMALL_RULES, metrics, sets, start

pytestmark = pytest.mark.usefixtures("no_pictures")
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


# --- Accumulate -----------------------------------------------------------------------------------


#: 13 rows a step in 4 parts of 3 or 4; the last batch of an epoch has a single row
PARTS = "training.accumulate=4"


def run(out: Path, *more: str, resume: bool = False) -> Path:
    settings = read_settings(recipe_text("rules"), (*OVERRIDES, *more))
    train(settings, None, out, resume=resume, show_progress=False)
    return out


def weights(out: Path) -> dict[str, np.ndarray]:
    return load_file(out / "last" / "model.safetensors")


def require_close(first: Path, second: Path) -> None:
    expected, actual = weights(first), weights(second)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert np.abs(actual[name] - value).max() <= 1e-5, name


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_batch_in_parts_gives_the_weights_and_metrics_of_the_batch(
    tmp_path: Path, penalty: str
) -> None:
    more = (f"penalty.name={penalty}", "penalty.threshold=3")
    whole, parts = run(tmp_path / "whole", *more), run(tmp_path / "parts", PARTS, *more)
    require_close(whole, parts)
    for expected, line in zip(metrics(whole), metrics(parts), strict=True):
        # A quotient of small gradients magnifies the rounding in which the two runs differ.
        share = "penalty_gradient_share"
        assert line.pop(share) == pytest.approx(expected.pop(share), rel=1e-3)
        assert line == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_two_processes_with_parts_give_the_weights_of_one(tmp_path: Path) -> None:
    one, two = run(tmp_path / "one"), tmp_path / "two"
    process = start("train", "rules", "--out", two, *sets((*OVERRIDES, PARTS)), launcher=TORCHRUN)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    require_close(one, two)


def test_a_run_with_parts_is_resumed_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = (PARTS, "embedding.dropout=0.2", "training.save_minutes=0")
    calm = run(tmp_path / "calm", *more)
    step, calls = Run.step, 0

    def stopped(self, examples):
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        step(self, examples)

    monkeypatch.setattr(Run, "step", stopped)
    with pytest.raises(Interrupted):
        run(tmp_path / "stopped", *more)
    monkeypatch.undo()
    run(tmp_path / "stopped", *more, resume=True)
    for name, value in weights(calm).items():
        assert np.array_equal(weights(tmp_path / "stopped")[name], value), name


def test_every_part_is_computed_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    forward = Run._forward

    def watched(self, batch, part):
        sizes.append(len(batch.mask))
        return forward(self, batch, part)

    monkeypatch.setattr(Run, "_forward", watched)
    run(tmp_path / "whole", "training.epochs=1")
    whole = sizes.copy()
    sizes.clear()
    run(tmp_path / "parts", "training.epochs=1", PARTS)
    assert sum(sizes) == sum(whole)
    assert max(sizes) * 3 <= max(whole) + 2 and len(sizes) == 2 * 4 + 1

"""A batch in parts is the batch: the same step, in less memory, in one process or two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from genpool.errors import Interrupted
from genpool.recipes import recipe_text
from genpool.training import read_settings, train
from genpool.training.run import Run
from tests.helpers.training_runs import metrics, sets, start
from tests.training.test_processes import OVERRIDES, TORCHRUN

#: 13 rows a step in 4 parts of 3 or 4; the last batch of an epoch has a single row
PARTS = "training.accumulate=4"
PENALTIES = ("parameter", "embedding")


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

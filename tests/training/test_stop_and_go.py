"""Runs in processes of their own that are stopped, politely or not, and go on to the same end."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from genpool.recipes import recipe_text
from genpool.training import read_settings, train
from tests.helpers.training_runs import SMALL_RULES, outcome, sets, start

STEPS_PER_EPOCH, EPOCHS = 12, 8
LAST_STEP = STEPS_PER_EPOCH * EPOCHS
OVERRIDES = (
    *SMALL_RULES,
    "reader.sizes=[96, 48, 24]",
    "training.batch_size=8",
    f"training.epochs={EPOCHS}",
    "training.halvings=8",
    "training.seed=5",  # with this one dev accuracy falls on the way, and best weights are restored
    "training.learning_rate=0.02",
    "training.save_minutes=0",  # a checkpoint after every step
    "penalty.name=parameter",  # its sums are part of a checkpoint, too
)


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("never-stopped") / "run"
    train(read_settings(recipe_text("rules"), OVERRIDES), None, out, show_progress=False)
    ended_with = outcome(out)
    assert ended_with["metrics"][-1]["step"] == LAST_STEP
    rates = {line["learning_rate"] for line in ended_with["metrics"]}
    assert len(rates) > 1, "best weights must have been restored, or less is shown"
    return ended_with


def newest(out: Path) -> int:
    """The step of the newest checkpoint, -1 without one."""
    names = [path.stem for path in (out / "checkpoints").glob("step-*")]
    return max((int(name.removeprefix("step-")) for name in names), default=-1)


@pytest.mark.slow
def test_stopped_at_ten_random_moments_it_ends_with_the_same_weights(tmp_path, never_stopped):
    out = tmp_path / "run"
    chance = random.Random(20180)
    steps = sorted(chance.sample(range(1, LAST_STEP * 2 // 3), 8))
    moments: list[Any] = [lambda step=step: newest(out) >= step for step in steps]
    moments.insert(4, lambda: True)  # while it is starting
    moments.append((out / "last").is_dir)  # while it is finishing
    command = ("train", "rules", "--out", out, *sets(OVERRIDES))
    for number, moment in enumerate(moments):
        process = start(*command, *(["--resume"] if number else []))
        while process.poll() is None and not moment():
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.04))
        polite = number == 0
        process.send_signal(signal.SIGINT if polite else signal.SIGKILL)
        said, _ = process.communicate()
        assert process.returncode == (130 if polite else -signal.SIGKILL), said
        if polite:
            stopped = f"stopped after step {newest(out)}; continue with the same command and"
            assert f"{stopped} --resume" in said and "Traceback" not in said
    assert not (out / "results.json").exists()
    process = start(*command, "--resume")
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert f"continuing after step {LAST_STEP}" in said
    assert outcome(out) == never_stopped

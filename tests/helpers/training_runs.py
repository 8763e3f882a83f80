"""Small runs: tables that can be learned in a moment, and what is compared between two runs."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from genpool.training import RunSettings, read_settings, train

RECIPE = """
[reader]
name = "table"

[embedding]
word_dim = 12
frozen = false
character_dim = 3
character_widths = [1, 2]
character_maps = 2
dropout = 0.1

[encoder]
name = "stacked-bilstm"
hidden_dim = 8
layers = 1

[pooling]
name = "generalized"
heads = 2
hidden_dim = 4

[classifier]
hidden_dim = 6
dropout = 0.1

[training]
epochs = 2
batch_size = 8
learning_rate = 0.05
"""
#: the same sizes for a recipe of the package, as arguments of the command
SMALL_RULES = (
    "embedding.word_dim=6",
    "embedding.character_dim=3",
    "embedding.character_maps=2",
    "encoder.hidden_dim=5",
    "pooling.heads=2",
    "pooling.hidden_dim=4",
    "classifier.hidden_dim=6",
)
#: the environment of processes that are compared with this one, whose tests have one thread
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
TIME_AND_MEMORY = ("seconds", "tokens_per_second", "peak_memory_mb")
DECISIVE = {"good": ("joy", "love", "best"), "bad": ("waste", "hate", "worst")}
OTHERS = ("the", "film", "was", "a", "plot", "and", "this", "music", ",", "scene")


@contextmanager
def without_pictures() -> Iterator[None]:
    """Drawing the picture of a run takes longer than the training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genpool.training.report.learning_curve_picture", lambda *arguments: None)
        yield


def settings(*overrides: str) -> RunSettings:
    return read_settings(RECIPE, overrides)


def reviews(count: int, seed: int) -> list[tuple[str, str]]:
    """(label, text): a word among others decides the label; lengths differ."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        label = ("good", "bad")[number % 2]
        words = [chance.choice(OTHERS) for _ in range(chance.randint(1, 7))]
        words.insert(chance.randrange(len(words) + 1), chance.choice(DECISIVE[label]))
        rows.append((label, " ".join(words)))
    return rows


def write_table(
    path: Path, rows: Iterable[Sequence[str]], header: Sequence[str] = ("label", "text")
) -> Path:
    lines = ["\t".join(row) for row in (header, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(data: Path | None, out: Path, *overrides: str, **options: Any) -> dict[str, Any]:
    return train(settings(*overrides), data, out, show_progress=False, **options)


def weights(out: Path, model: str = "best") -> bytes:
    """The file of a model's weights: two runs are the same only if all of its bytes are."""
    return (out / model / "model.safetensors").read_bytes()


def metrics(out: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without what no two runs share."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in line.items() if name not in TIME_AND_MEMORY}
        for line in lines
    ]


def scores(out: Path) -> dict[str, Any]:
    """The scores of results.json, by split, without what is about the run."""
    results = json.loads((out / "results.json").read_text())
    return {name: score for name, score in results.items() if name != "run"}


def outcome(out: Path) -> dict[str, Any]:
    """Everything that a run ends with and that another must share: bytes, scores, metrics."""
    return {
        "best": weights(out, "best"),
        "last": weights(out, "last"),
        "metrics": metrics(out),
        "results": scores(out),
        "predictions": {
            path.name: path.read_bytes() for path in sorted((out / "predictions").iterdir())
        },
    }


def start(*arguments: object, launcher: Sequence[str] = ()) -> subprocess.Popen[str]:
    """The command as a process of its own, with one thread like the tests."""
    command = [sys.executable, *launcher, "-m", "genpool", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ONE_THREAD,
    )


class Killed(BaseException):
    """As good as a kill: nothing in the package catches it."""


@contextmanager
def stopping(owner: Any, name: str, at: int, by: Any = Killed) -> Iterator[None]:
    """The call of that number, from 1, never begins: an exception; or a signal comes before it."""
    calls, original = count(1), getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        if next(calls) == at:
            if not isinstance(by, signal.Signals):
                raise by
            os.kill(os.getpid(), by)
        return original(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, call)
        yield


def sets(overrides: Iterable[str]) -> list[str]:
    """Overrides as arguments of the command."""
    return [word for override in overrides for word in ("--set", override)]

"""From the folder of a finished run to the record of its cell."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from genpool.evaluation import read_predictions
from genpool.reproduction.ledger import DONE, Record, pack_rows
from genpool.saving.storage import CONFIG
from genpool.training.run_folder import RunFolder

#: the note of a model about the syntax trees that it was trained with
TREES_NOTE = "syntax trees"


def record_of_run(key: str, cell: Mapping[str, Any], path: Path, root: Path) -> Record:
    """Returns the record of a finished run, and removes what nobody needs any more.

    The predictions and the best model stay; the last model, which is as large, goes.
    """
    folder = RunFolder(path)
    results = json.loads(folder.results.read_text(encoding="utf-8"))
    about = json.loads(folder.about.read_text(encoding="utf-8"))
    lines = folder.metric_lines()
    settings = tomllib.loads(folder.config.read_text(encoding="utf-8"))
    settings.get("vectors", {}).pop("path", None)  # where it was says nothing about the run
    accuracy: dict[str, float] = {}
    correct: dict[str, str] = {}
    counts: dict[str, int] = {}
    for file in sorted(folder.predictions.glob("*.tsv")):
        predictions = read_predictions(file)
        if None in predictions.gold:
            continue  # a test set whose labels are not public
        rows = np.array(predictions.gold) == np.array(predictions.predicted)  # (rows,)
        accuracy[file.stem], counts[file.stem] = float(rows.mean()), len(rows)
        if file.stem != "dev":
            correct[file.stem] = pack_rows(rows)
    shutil.rmtree(folder.last, ignore_errors=True)
    return Record(
        key=key,
        status=DONE,
        accuracy=accuracy,
        correct=correct,
        counts=counts,
        dev_curve=[line["dev_accuracy"] for line in lines],
        dev_epochs=_epochs(lines),
        heads=_head_figures(lines[-1]),
        asleep=_was_asleep(lines),
        parameters=results["run"]["trained_parameters"],
        seconds=lines[-1]["seconds"],
        settings=settings,
        versions=about["versions"],
        predictions=folder.predictions.relative_to(root).as_posix(),
        trees=_trees(folder),
        cell=dict(cell),
    )


def _trees(folder: RunFolder) -> str:
    """Returns where the syntax trees of the run came from, as the model's notes have it."""
    config = json.loads((folder.best / CONFIG).read_text(encoding="utf-8"))
    return str(config["notes"].get(TREES_NOTE, ""))


def _epochs(lines: list[dict[str, Any]]) -> list[float]:
    """Returns how many epochs were trained at every evaluation, such as 0.5, 1, 1.5, 2.

    `epoch` of a line counts whole epochs, so the line at the end of one has the fewest steps an
    epoch. A run that its schedule stopped within the first epoch counts as one.
    """
    ends = [line["step"] / line["epoch"] for line in lines if line["epoch"]]
    steps = min(ends, default=lines[-1]["step"])
    return [round(line["step"] / steps, 3) for line in lines]


def _head_figures(line: Mapping[str, Any]) -> dict[str, float]:
    """Returns what the last line of metrics says about heads and penalties."""
    return {
        name: float(value) for name, value in line.items() if name.startswith(("heads_", "penalty"))
    }


def _was_asleep(lines: list[dict[str, Any]]) -> bool:
    """Returns whether the run has a penalty that was not active in any step."""
    shares = [line["penalty_active"] for line in lines if "penalty_active" in line]
    return bool(shares) and not any(shares)

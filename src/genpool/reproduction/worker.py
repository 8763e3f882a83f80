"""A process that trains cells one after the other: a JSON line in for each, a JSON line out.

The reproduction keeps as many of these as it has jobs, each with one thread. One that dies (out of
memory, killed) costs its cell alone; one whose parent dies ends at once, because the other end of
its standard input is gone, and its run continues from its checkpoint later.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sys
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from genpool.errors import GenpoolError, Interrupted
from genpool.evaluation import read_predictions
from genpool.recipes import recipe_text
from genpool.reproduction.ledger import DONE, FAILED, Record, pack_rows
from genpool.saving.storage import CONFIG
from genpool.training.run_folder import RunFolder


def run_cell(job: dict[str, Any]) -> dict[str, Any]:
    """Trains the cell of a job, or continues it, and returns its record as a dictionary.

    Args:
        job: `cell` (the fields of a `Cell`), `key`, `data`, `vectors`, `folder` and `root`.
    """
    from genpool.training import read_settings, train

    folder = Path(job["folder"])
    overrides = [*job["cell"]["overrides"], f"training.seed={job['cell']['seed']}"]
    if job["vectors"] is not None:
        overrides.append(f"vectors.path={json.dumps(job['vectors'])}")
    try:
        settings = read_settings(recipe_text(job["cell"]["recipe"]), overrides, job["key"])
        if not (folder / "results.json").is_file():
            train(settings, job["data"], folder, resume=True, show_progress=False)
        return asdict(record_of_run(job["key"], job["cell"], folder, Path(job["root"])))
    except Interrupted:
        return {"key": job["key"], "status": "interrupted"}
    except GenpoolError as error:
        return {"key": job["key"], "status": FAILED, "reason": str(error)}
    except MemoryError:
        return {"key": job["key"], "status": FAILED, "reason": "out of memory"}


def record_of_run(key: str, cell: Mapping[str, Any], path: Path, root: Path) -> Record:
    """Returns the record of a finished run, and removes what nobody needs any more.

    The predictions and the best model stay; the last model, which is as large, goes.
    """
    folder = RunFolder(path)
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
    shares = [line["penalty_active"] for line in lines if "penalty_active" in line]
    shutil.rmtree(folder.last, ignore_errors=True)
    return Record(
        key=key,
        status=DONE,
        accuracy=accuracy,
        correct=correct,
        counts=counts,
        dev_curve=[line["dev_accuracy"] for line in lines],
        dev_epochs=trained_epochs(lines),
        heads={
            name: float(value)
            for name, value in lines[-1].items()
            if name.startswith(("heads_", "penalty"))
        },
        asleep=bool(shares) and not any(shares),
        parameters=_read_json(folder.results)["run"]["trained_parameters"],
        seconds=lines[-1]["seconds"],
        settings=settings,
        versions=_read_json(folder.about)["versions"],
        predictions=folder.predictions.relative_to(root).as_posix(),
        trees=str(_read_json(folder.best / CONFIG)["notes"].get("syntax trees", "")),
        cell=dict(cell),
    )


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def trained_epochs(lines: list[dict[str, Any]]) -> list[float]:
    """Returns how many epochs were trained at every evaluation, such as 0.5, 1, 1.5, 2.

    `epoch` of a line counts whole epochs, so the line at the end of one has the fewest steps an
    epoch. A run that its schedule stopped within the first epoch counts as one.
    """
    ends = [line["step"] / line["epoch"] for line in lines if line["epoch"]]
    steps = min(ends, default=lines[-1]["step"])
    return [round(line["step"] / steps, 3) for line in lines]


def main() -> None:
    """Runs the jobs of standard input until it is closed."""
    import torch

    torch.set_num_threads(1)
    # A reproduction in the background of a shell ignores SIGINT, and its processes would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The answers have standard output for themselves: whatever else is printed goes to the log.
    answers, sys.stdout = sys.stdout, sys.stderr
    jobs: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            jobs.put(line)
        os._exit(0)  # the reproduction has ended, or was killed

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            print(json.dumps(run_cell(json.loads(jobs.get()))), file=answers, flush=True)
        except KeyboardInterrupt:  # between two cells; within one, the run saves its state
            os._exit(130)


if __name__ == "__main__":
    main()

"""Processes that train cells one after the other: a JSON line in for each, a JSON line out.

One that dies (out of memory, killed) costs its cell alone; one whose parent dies ends at once,
because its standard input is closed, and its run continues from its checkpoint later.
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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import numpy as np

from genpool.disk.folder_format import read_json
from genpool.errors import GenpoolError, Interrupted
from genpool.evaluation import read_predictions
from genpool.recipes import recipe_text
from genpool.reproduction.ledger import DONE, FAILED, Cell, Record, pack_rows
from genpool.saving.storage import CONFIG
from genpool.training.run_folder import RunFolder

INTERRUPTED = "interrupted"
ENVIRONMENT = {
    # Two threads on a shared core are many times slower than one.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # glibc keeps the large buffers that every step frees and needs again; otherwise it returns them
    # to the kernel, and page faults take 7 % of the time.
    "MALLOC_MMAP_THRESHOLD_": "2000000000",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
}


class Workers(AbstractContextManager["Workers"]):
    """As many worker processes as jobs, seen from the reproduction; `log` gets what they print.

    A context, at whose end runs that are not finished are interrupted and save their state.
    """

    def __init__(self, jobs: int, log: Path) -> None:
        self.log = log
        self._threads = ThreadPoolExecutor(jobs)  # each waits for one process
        self._processes: list[Popen[str]] = []
        self._idle: list[Popen[str]] = []

    def submit(self, job: dict[str, Any]) -> Future[dict[str, Any]]:
        """Returns the answer of `run_cell`, later; at most `jobs` may be open."""
        self._idle = [process for process in self._idle if process.poll() is None]
        process = self._idle.pop() if self._idle else self._start()
        return self._threads.submit(self._train, process, job)

    def _train(self, process: Popen[str], job: dict[str, Any]) -> dict[str, Any]:
        with suppress(BrokenPipeError):  # it has died since its last cell
            print(json.dumps(job), file=process.stdin, flush=True)
        for line in process.stdout or ():
            self._idle.append(process)
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = process.wait()
        reason = f"the process ended with exit code {code}; see {self.log.name}"
        if code < 0:
            reason = f"the process was killed by signal {-code}: out of memory?"
        return {"status": FAILED, "reason": reason}

    def _start(self) -> Popen[str]:
        with self.log.open("ab") as file:
            process = Popen(
                [sys.executable, "-m", "genpool.reproduction.workers"],
                stdin=PIPE,
                stdout=PIPE,
                stderr=file,
                text=True,
                env={**os.environ, **ENVIRONMENT},
                # Ctrl-C reaches the workers through this process, once: a second would not save.
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def __exit__(self, *error: object) -> None:
        try:
            for process in self._processes:
                if os.name == "posix":
                    process.send_signal(signal.SIGINT)
                else:  # it has no such signal: a run continues from its last checkpoint
                    process.terminate()
            self._threads.shutdown()  # a run that is interrupted saves its state first
        finally:
            for process in self._processes:  # which ends when its standard input is closed
                with suppress(BrokenPipeError):
                    process.communicate()


def run_cell(job: dict[str, Any]) -> dict[str, Any]:
    """Trains the cell of a job (`Reproduction.make_job`) to its end; returns its record."""
    from genpool.training import read_settings, train

    cell, out = Cell(**job["cell"]), Path(job["out"])
    folder = out / "runs" / cell.folder
    overrides = [*cell.overrides, f"training.seed={cell.seed}"]
    if job["vectors"] is not None:
        overrides.append(f"vectors.path={json.dumps(job['vectors'])}")
    try:
        settings = read_settings(recipe_text(cell.recipe), overrides, cell.key)
        if not (folder / "results.json").is_file():
            train(settings, job["data"], folder, resume=True, show_progress=False)
        return asdict(record_of_run(cell, folder, out))
    except Interrupted:
        return {"status": INTERRUPTED}
    except GenpoolError as error:
        return {"status": FAILED, "reason": str(error)}
    except MemoryError:
        return {"status": FAILED, "reason": "out of memory"}


def record_of_run(cell: Cell, path: Path, out: Path) -> Record:
    """Returns the record of a finished run; its last model, which nobody needs, is removed."""
    folder = RunFolder(path)
    lines = folder.metric_lines()
    settings = tomllib.loads(folder.config.read_text(encoding="utf-8"))
    settings.get("vectors", {}).pop("path", None)  # where it was says nothing about the run
    right = {}
    for file in sorted(folder.predictions.glob("*.tsv")):
        predictions = read_predictions(file)
        if None not in predictions.gold:  # otherwise a test set whose labels are not public
            right[file.stem] = np.array(predictions.gold) == np.array(predictions.predicted)
    shares = [line["penalty_active"] for line in lines if "penalty_active" in line]
    shutil.rmtree(folder.last, ignore_errors=True)
    return Record(
        key=cell.key,
        status=DONE,
        accuracy={split: float(rows.mean()) for split, rows in right.items()},
        correct={split: pack_rows(rows) for split, rows in right.items() if split != "dev"},
        counts={split: len(rows) for split, rows in right.items()},
        dev_curve=[line["dev_accuracy"] for line in lines],
        dev_epochs=trained_epochs(lines),
        heads={
            name: float(value)
            for name, value in lines[-1].items()
            if name.startswith(("heads_", "penalty"))
        },
        inactive=bool(shares) and not any(shares),
        parameters=read_json(folder.results)["run"]["trained_parameters"],
        seconds=lines[-1]["seconds"],
        settings=settings,
        versions=read_json(folder.about)["versions"],
        predictions=folder.predictions.relative_to(out).as_posix(),
        trees=str(read_json(folder.best / CONFIG)["notes"].get("syntax trees", "")),
        cell=asdict(cell),
    )


def trained_epochs(lines: list[dict[str, Any]]) -> list[float]:
    """Returns how many epochs were trained at every evaluation, such as 0.5, 1, 1.5, 2."""
    # `epoch` counts whole epochs, so the line at the end of one has the fewest steps an epoch. A
    # run that its schedule stopped within the first epoch counts as one.
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

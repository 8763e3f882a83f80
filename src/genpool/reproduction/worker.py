"""A process that trains cells one after the other: a JSON line in for each, a JSON line out.

The reproduction keeps as many of these as it has jobs, each with one thread. One that dies (out of
memory, killed) costs its cell alone; one whose parent dies ends at once, because the other end of
its standard input is gone, and its run continues from its checkpoint later.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from genpool.errors import GenpoolError, Interrupted
from genpool.recipes import recipe_text
from genpool.reproduction.outcome import record_of_run


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
        record = record_of_run(job["key"], job["cell"], folder, Path(job["root"]))
    except Interrupted:
        return {"key": job["key"], "status": "interrupted"}
    except GenpoolError as error:
        return {"key": job["key"], "status": "failed", "reason": str(error)}
    except MemoryError:
        return {"key": job["key"], "status": "failed", "reason": "out of memory"}
    return asdict(record)


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

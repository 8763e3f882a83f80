"""Runs cells on several worker processes, as long as a plan has some."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from genpool.disk.atomic import atomic_file
from genpool.reproduction.ledger import FAILED, Cell, Ledger, Record

#: two threads on a shared core are many times slower than one
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
#: glibc keeps the large buffers that every step frees and needs again; otherwise it returns them to
#: the kernel, and page faults take 7 % of the time
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "2000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000"}


@dataclass
class Worker:
    """A worker process and the cell that it is training."""

    process: subprocess.Popen[str]
    cell: Cell | None = None
    began: float = 0.0

    def end(self) -> int:
        """Ends the process, which stops when its standard input is closed; returns its code."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


class Runner:
    """Keeps worker processes busy, one thread each, until the plan needs nothing more.

    `make_job` returns what a worker needs to know of a cell, or why it cannot be run. The folder
    gets the workers' log and a list of the cells that are running.
    """

    def __init__(
        self,
        ledger: Ledger,
        jobs: int,
        folder: Path,
        make_job: Callable[[Cell], dict[str, Any] | str],
        say: Callable[[str], None],
    ) -> None:
        self.ledger, self.jobs, self.folder = ledger, jobs, folder
        self.make_job, self.say = make_job, say
        self._answers: queue.Queue[tuple[Worker, dict[str, Any] | None]] = queue.Queue()
        self._workers: list[Worker] = []

    def run(self, pending: Callable[[], Sequence[Cell]]) -> None:
        """Runs cells until none is pending; KeyboardInterrupt passes on to the workers."""
        try:
            while True:
                cells = pending()
                self._start(cells)
                if self._busy():
                    self._finish(*self._answers.get())
                elif not cells:  # otherwise all of them have failed, and others may follow
                    return
        finally:
            self._close()

    def _busy(self) -> dict[str, Worker]:
        """Returns the workers that are training, by the keys of their cells."""
        return {worker.cell.key: worker for worker in self._workers if worker.cell is not None}

    def _start(self, cells: Sequence[Cell]) -> None:
        for cell in cells:
            busy = self._busy()
            if len(busy) >= self.jobs:
                break
            if cell.key in busy:
                continue
            job = self.make_job(cell)
            if isinstance(job, str):
                self._fail(cell, job)
                continue
            idle = (worker for worker in self._workers if worker.cell is None)
            worker = next(idle, None) or self._new_worker()
            worker.cell, worker.began = cell, time.time()
            self.say(f"started   {cell}")
            if worker.process.stdin is not None:
                worker.process.stdin.write(json.dumps(job) + "\n")
                worker.process.stdin.flush()
        # For `genpool reproduce status`.
        running = [
            {"cell": str(worker.cell), "key": key, "began": worker.began}
            for key, worker in self._busy().items()
        ]
        with atomic_file(self.folder / "running.json") as temporary:
            text = json.dumps({"pid": os.getpid(), "running": running})
            temporary.write_text(text + "\n", encoding="utf-8", newline="\n")

    def _new_worker(self) -> Worker:
        with (self.folder / "workers.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "genpool.reproduction.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **THREADS, **ALLOCATOR},
                # Ctrl-C reaches the workers through this process, once: a second would not save.
                start_new_session=True,
            )
        worker = Worker(process)
        self._workers.append(worker)
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()
        return worker

    def _listen(self, worker: Worker) -> None:
        for line in worker.process.stdout or ():
            self._answers.put((worker, json.loads(line)))
        self._answers.put((worker, None))  # the process has ended

    def _finish(self, worker: Worker, answer: dict[str, Any] | None) -> None:
        cell, worker.cell = worker.cell, None
        if answer is None:
            self._workers.remove(worker)
            code = worker.end()
            answer = {"status": FAILED, "reason": _why_ended(code)}
        if answer["status"] == "interrupted":
            raise KeyboardInterrupt
        if cell is None:
            return
        if answer["status"] == FAILED:
            self._fail(cell, answer["reason"])
            return
        record = Record(**answer)
        self.ledger.add(record)
        scores = ", ".join(f"{name} {100 * score:.2f} %" for name, score in record.accuracy.items())
        self.say(f"finished  {cell}: {scores}, {time.time() - worker.began:,.0f} s")

    def _fail(self, cell: Cell, reason: str) -> None:
        self.ledger.add(Record(cell.key, FAILED, reason, cell=asdict(cell)))
        self.say(f"failed    {cell}: {reason}")

    def _close(self) -> None:
        busy = list(self._busy().values())
        try:
            for worker in busy:
                if os.name == "posix":
                    worker.process.send_signal(signal.SIGINT)
                else:  # it has no such signal: the run continues from its last checkpoint
                    worker.process.terminate()
            while busy:  # a run that is interrupted saves its state first
                worker, _ = self._answers.get()
                if worker in busy:
                    busy.remove(worker)
        finally:
            for worker in self._workers:
                worker.end()
            (self.folder / "running.json").unlink(missing_ok=True)


def _why_ended(code: int) -> str:
    if code < 0:
        return f"the process was killed by signal {-code}: out of memory?"
    return f"the process ended with exit code {code}; see workers.log"

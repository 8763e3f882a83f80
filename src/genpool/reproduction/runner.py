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
from typing import IO, Any

from genpool.disk.atomic import atomic_file
from genpool.reproduction.cells import Cell
from genpool.reproduction.ledger import FAILED, Ledger, Record

#: two threads on a shared core are many times slower than one
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
#: glibc keeps the large buffers that every step frees and needs again; otherwise it returns them to
#: the kernel, and page faults take 7 % of the time
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "2000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000"}
#: asks what is needed next, given what is finished
Pending = Callable[[], Sequence[Cell]]
#: the job of a cell, or why it cannot be run
MakeJob = Callable[[Cell], dict[str, Any] | str]


@dataclass
class Worker:
    """A worker process and the cell that it is training."""

    process: subprocess.Popen[str]
    cell: Cell | None = None
    began: float = 0.0


class Runner:
    """Keeps worker processes busy until the plan needs nothing more.

    Args:
        ledger: where finished and failed cells are entered.
        jobs: number of cells that are trained at once, each on one thread.
        folder: where the workers' log and the list of running cells are.
        make_job: returns what a worker needs to know of a cell.
        say: prints a line for people.
    """

    def __init__(
        self,
        ledger: Ledger,
        jobs: int,
        folder: Path,
        make_job: MakeJob,
        say: Callable[[str], None],
    ) -> None:
        self.ledger, self.jobs, self.folder = ledger, jobs, folder
        self.make_job, self.say = make_job, say
        self._answers: queue.Queue[tuple[Worker, dict[str, Any] | None]] = queue.Queue()
        self._workers: list[Worker] = []

    def run(self, pending: Pending) -> None:
        """Runs cells until none is pending; KeyboardInterrupt passes on to the workers."""
        try:
            while True:
                cells = pending()
                self._start(cells)
                if any(worker.cell for worker in self._workers):
                    self._finish(*self._answers.get())
                elif not cells:  # otherwise all of them have failed, and others may follow
                    return
        finally:
            self._close()

    def _start(self, cells: Sequence[Cell]) -> None:
        running = {worker.cell.key for worker in self._workers if worker.cell is not None}
        for cell in cells:
            busy = sum(worker.cell is not None for worker in self._workers)
            if busy >= self.jobs:
                break
            if cell.key in running:
                continue
            job = self.make_job(cell)
            if isinstance(job, str):
                self._fail(cell, job)
                continue
            running.add(cell.key)
            worker = self._idle_worker()
            worker.cell, worker.began = cell, time.time()
            self.say(f"started   {cell}")
            stdin = worker.process.stdin
            if stdin is not None:
                stdin.write(json.dumps(job) + "\n")
                stdin.flush()
        self._note_running()

    def _idle_worker(self) -> Worker:
        for worker in self._workers:
            if worker.cell is None:
                return worker
        self.folder.mkdir(parents=True, exist_ok=True)
        log: IO[bytes] = (self.folder / "workers.log").open("ab")
        environment = {**os.environ, **THREADS, **ALLOCATOR}
        process = subprocess.Popen(
            [sys.executable, "-m", "genpool.reproduction.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            # Ctrl-C reaches the workers through this process, once: a second one would not save.
            start_new_session=True,
        )
        log.close()
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
            code = _end(worker.process)
            if cell is not None:
                self._fail(cell, _why_ended(code))
        elif answer["status"] == "interrupted":
            raise KeyboardInterrupt
        elif cell is not None and answer["status"] == FAILED:
            self._fail(cell, answer["reason"])
        elif cell is not None:
            record = Record(**answer)
            self.ledger.add(record)
            scores = ", ".join(
                f"{name} {100 * score:.2f} %" for name, score in record.accuracy.items()
            )
            self.say(f"finished  {cell}: {scores}, {time.time() - worker.began:,.0f} s")

    def _fail(self, cell: Cell, reason: str) -> None:
        self.ledger.add(Record(cell.key, FAILED, reason, cell=asdict(cell)))
        self.say(f"failed    {cell}: {reason}")

    def _note_running(self) -> None:
        """Writes which cells are running, for `genpool reproduce status`."""
        running = [
            {"cell": str(worker.cell), "key": worker.cell.key, "began": worker.began}
            for worker in self._workers
            if worker.cell is not None
        ]
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(self.folder / "running.json") as temporary:
            text = json.dumps({"pid": os.getpid(), "running": running})
            temporary.write_text(text + "\n", encoding="utf-8", newline="\n")

    def _close(self) -> None:
        busy = [worker for worker in self._workers if worker.cell is not None]
        try:
            for worker in busy:
                _interrupt(worker.process)
            while busy:  # a run that is interrupted saves its state first
                worker, _ = self._answers.get()
                if worker in busy:
                    busy.remove(worker)
        finally:
            for worker in self._workers:
                _end(worker.process)
            (self.folder / "running.json").unlink(missing_ok=True)


def _end(process: subprocess.Popen[str]) -> int:
    """Ends a worker, which stops when its standard input is closed; returns its exit code."""
    if process.stdin is not None:
        process.stdin.close()
    code = process.wait()
    if process.stdout is not None:
        process.stdout.close()
    return code


def _interrupt(process: subprocess.Popen[str]) -> None:
    if os.name == "posix":
        process.send_signal(signal.SIGINT)
    else:  # it has no such signal: the run continues from its last checkpoint
        process.terminate()


def _why_ended(code: int) -> str:
    if code < 0:
        return f"the process was killed by signal {-code}: out of memory?"
    return f"the process ended with exit code {code}; see workers.log"

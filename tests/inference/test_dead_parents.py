"""Worker processes and their model end with the process that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from genpool import SentenceEncoder
from genpool.inference.workers import WorkerPool

#: longest wait for processes that should end at once; else they never would
END_SECONDS = 120

PARENT = """
import sys
from genpool import SentenceEncoder
from genpool.inference.workers import WorkerPool

if __name__ == "__main__":  # each worker imports this file too
    pool = WorkerPool(SentenceEncoder.from_pretrained(sys.argv[1]), 2)
    for _ in range(int(sys.argv[2])):
        pool.encode(["a dog"] * 64, batch_size=1)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and those that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def start(model: SentenceEncoder, tmp_path: Path, tasks: int) -> subprocess.Popen[str]:
    model.save_pretrained(tmp_path / "saved")
    (tmp_path / "parent.py").write_text(PARENT)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "parent.py", tmp_path / "saved", str(tasks)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def models_in(temporary: Path) -> list[Path]:
    return [path for path in temporary.iterdir() if "genpool" in path.name]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_and_their_model_end_with_a_killed_parent(
    sentence_encoder: SentenceEncoder, tmp_path: Path, temporary: Path, number: signal.Signals
) -> None:
    process = start(sentence_encoder, tmp_path, tasks=2)
    assert len(models_in(temporary)) == 1
    process.send_signal(number)
    # The workers have the same standard output: it ends when the last of them has ended.
    assert process.communicate(timeout=END_SECONDS)[0] == ""
    assert process.returncode == -number
    assert models_in(temporary) == []


def test_a_model_that_a_killed_parent_left_is_removed_by_the_next_pool(
    sentence_encoder: SentenceEncoder, tmp_path: Path, temporary: Path
) -> None:
    process = start(sentence_encoder, tmp_path, tasks=0)  # killed before a worker was started
    process.kill()
    process.communicate(timeout=END_SECONDS)
    [abandoned] = models_in(temporary)
    with WorkerPool(sentence_encoder, 1):
        [present] = models_in(temporary)
        assert present != abandoned
    assert models_in(temporary) == []


def test_an_error_ends_workers_in_the_middle_of_a_task(
    sentence_encoder: SentenceEncoder, temporary: Path
) -> None:
    with pytest.raises(KeyboardInterrupt), WorkerPool(sentence_encoder, 1) as pool:
        pool.encode(["a dog"])
        [process] = pool._pool._processes.values()
        task = pool._pool.submit(time.sleep, END_SECONDS)
        while not task.running():  # until then it could still be cancelled
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert process.exitcode == 1  # 0 after a task that was finished
    assert models_in(temporary) == []

"""Several processes give what one gives, in order, and end with the one that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.errors import FolderError, GenpoolError, InputError
from genpool.inference import workers
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.inference.workers import WorkerPool, following_parent
from genpool.text import TextPipeline
from tests.helpers.random_encoders import SENTENCES, largest_difference, model

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


@pytest.fixture(scope="module")
def encoder():
    made = model("bilstm")
    text = made.text
    cutting = TextPipeline(text.tokenizer, text.vocabulary, text.characters, max_length=4)
    return SentenceEncoder.from_settings(cutting, made.settings)


@pytest.fixture(scope="module")
def pool(encoder) -> Iterator[WorkerPool]:
    with WorkerPool(encoder, 2) as made:
        yield made


def test_same_vectors_in_the_same_order(encoder, pool) -> None:
    many = SENTENCES * 50
    before = encoder.text.cut.sentences
    found = pool.encode(many, batch_size=4)  # chunks of 64 sentences: several for each process
    # "a dog runs in the park" and "Unheard zzyzx words" have 6 and 3 tokens: one is cut.
    assert encoder.text.cut.sentences - before == 50
    assert largest_difference(found, encoder.encode(many)) < 1e-6


def test_a_stream_is_read_as_it_is_needed(pool) -> None:
    given = 0

    def endless() -> Iterator[str]:
        nonlocal given
        while True:
            given += 1
            yield "a man"

    stream = pool.encode_stream(endless(), batch_size=4)
    for _ in range(5):
        assert next(stream).shape == (64, pool.output_dim)
    assert given <= 64 * (5 + 2 * 2 + 1)
    stream.close()


def test_nothing_and_bad_input(pool) -> None:
    assert pool.encode([]).shape == (0, pool.output_dim)
    with pytest.raises(InputError, match="expected a sentence"):
        pool.encode(["a man", None])
    with pytest.raises(InputError, match="batch_size is 0; expected 1 or more"):
        pool.encode(["a man"], batch_size=0)
    with pytest.raises(InputError, match="workers is 0"):
        WorkerPool(model("bilstm"), 0)


def test_a_worker_that_dies_is_told_of(encoder) -> None:
    with WorkerPool(encoder, 1) as pool:
        pool.encode(["a man"])
        for process in pool._pool._processes.values():
            process.kill()
        with pytest.raises(GenpoolError, match="worker processes ended"):
            pool.encode(["a man"] * 10)


@pytest.fixture
def worker_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(workers, "_exit_with_parent", lambda *_: None)
    monkeypatch.setattr("os._exit", sys.exit)


@pytest.mark.usefixtures("worker_in_this_process")
def test_a_worker_that_is_stopped_while_it_loads_exits_without_a_word() -> None:
    receiver, sender = Pipe(duplex=False)
    sender.close()
    with pytest.raises(SystemExit), following_parent(receiver, "removed"):
        raise FolderError("removed by another worker")
    receiver.close()


def test_other_encoders_stream_by_themselves(encoder) -> None:
    class Other(SentenceVectors):
        pass

    other = Other()
    with other.streaming_form() as found:
        assert found is other
    for options in ({"workers": 2}, {"int8": True}):
        with pytest.raises(InputError), other.streaming_form(**options):
            pass
    with encoder.streaming_form(int8=True) as found:
        assert np.isfinite(next(iter(found.encode_stream(["a man"]))).numpy()).all()


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


@pytest.mark.slow
def test_workers_and_their_model_end_with_a_killed_parent(
    sentence_encoder: SentenceEncoder, tmp_path: Path, temporary: Path
) -> None:
    process = start(sentence_encoder, tmp_path, tasks=2)
    assert len(models_in(temporary)) == 1
    process.kill()
    # The workers have the same standard output: it ends when the last of them has ended.
    assert process.communicate(timeout=END_SECONDS)[0] == ""
    assert process.returncode == -signal.SIGKILL
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

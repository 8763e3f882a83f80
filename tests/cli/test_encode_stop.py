"""`genpool encode` that is stopped says how far it was, and leaves nothing half-written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: longest wait for the command to start encoding
START_SECONDS = 120

# A shell may have started the tests with SIGINT ignored, which processes inherit.
COMMAND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from genpool.cli import main; main()"
)


def has_written(folder: Path) -> bool:
    """Whether a temporary output has more than the header of its file."""
    sizes = []
    for path in folder.rglob("*"):
        try:
            sizes.append(path.stat().st_size if path.is_file() else 0)
        except FileNotFoundError:  # removed in this moment
            continue
    return max(sizes, default=0) > 4096


def is_of_torch(path: Path) -> bool:
    """Whether PyTorch made a temporary folder: up to 2.9, importing it does."""
    return any(path.glob("_remote_module*.py"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "number", "workers"), [("v.npy", signal.SIGINT, 2), ("index/", signal.SIGTERM, 1)]
)
def test_a_stopped_run_says_how_far_it_was_and_leaves_nothing(
    sentence_encoder, tmp_path, output, number, workers
):
    sentence_encoder.save_pretrained(tmp_path / "model")
    (tmp_path / "many.txt").write_text("a dog runs .\n" * 500_000)
    folder, temporary = tmp_path / "out", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    out = f"{folder}/{output}"
    files = [str(tmp_path / name) for name in ("model", "many.txt")]
    options = ["-o", out, "--batch-size", "4", "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "encode", *files, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)},
    )
    last = time.monotonic() + START_SECONDS
    while not has_written(folder) and process.poll() is None and time.monotonic() < last:
        time.sleep(0.01)
    process.send_signal(number)
    said, complaint = process.communicate()
    assert process.returncode == 130, complaint
    assert said == "" and "Traceback" not in complaint
    message = re.escape("of 500,000 sentences; nothing was written to " + out)
    found = re.search(rf"stopped after ([\d,]+) {message}; run the command again", complaint)
    assert found and 0 < int(found[1].replace(",", "")) < 500_000, complaint
    assert list(folder.iterdir()) == []
    assert [path for path in temporary.iterdir() if not is_of_torch(path)] == []

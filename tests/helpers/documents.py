"""Running the commands and the Python blocks of a Markdown page, in order, as its reader would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: reads blocks as JSON lines and runs them in one namespace, as a notebook does
INTERPRETER = """
import contextlib, io, json, sys, traceback
answers, namespace = sys.stdout, {"__name__": "__main__"}
for line in sys.stdin:
    printed, failure = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(json.loads(line), "<block>", "exec"), namespace)
        except BaseException:
            failure = traceback.format_exc()
    print(json.dumps([printed.getvalue(), failure]), file=answers, flush=True)
"""


class Block(NamedTuple):
    """A block of code: its language, "bash" or "python", and its text."""

    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """Returns the blocks of a page that are run; other languages (`sh`, `py`) are only shown."""
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


def environment() -> dict[str, str]:
    """Returns the environment of a command: this interpreter's scripts come first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path}


def run_command(command: list[str] | str, folder: Path) -> str:
    """Runs a command in a folder and returns what it printed; it must succeed."""
    finished = subprocess.run(
        command,
        cwd=folder,
        shell=isinstance(command, str),
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, f"{command}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


class Reader:
    """Runs the blocks of a page in a folder; Python blocks share one interpreter."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder, self._process = folder, process

    def run(self, block: Block) -> str:
        """Runs a block and returns what it printed; it must succeed."""
        if block.language == "bash":
            return run_command(["bash", "-ec", block.text], self.folder)
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the interpreter has no pipes")
        self._process.stdin.write(json.dumps(block.text) + "\n")
        self._process.stdin.flush()
        printed, failure = json.loads(self._process.stdout.readline())
        assert failure is None, f"{block.text}\n{failure}"
        return str(printed)


@contextmanager
def reading(folder: Path) -> Iterator[Reader]:
    """A reader of one page, who works in a folder."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERPRETER],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Reader(folder, process)
        finally:
            if process.stdin is not None:
                process.stdin.close()

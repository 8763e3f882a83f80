"""The README is run: every command and every Python block, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def run(command: list[str] | str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        command,
        cwd=folder,
        shell=isinstance(command, str),
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, f"{command}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


def without_comment(line: str) -> str:
    return re.sub(r"\s+#.*", "", line).strip()


def test_set_up_has_exactly_two_commands():
    first = next(text for language, text in blocks() if language == "bash")
    assert [without_comment(line) for line in first.splitlines()] == ["make demo", "make test"]


# `make test` itself is not run here: it is what runs this test.
def test_make_demo_encodes_compares_explains_and_classifies():
    printed = run(["make", "demo", f"VENV={sys.prefix}"], ROOT)
    for part in ("3 sentences ->", "head 1", "entailment", "contradiction", "Next:"):
        assert part in printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.mark.parametrize("number", range(1, len(blocks())))
def test_every_block_runs_after_those_before_it(number, folder):
    language, text = blocks()[number]
    if language == "bash":
        for line in text.splitlines():
            run(line, folder)
        return
    earlier = "".join(block for kind, block in blocks()[:number] if kind == "python")
    run([sys.executable, "-c", earlier + text], folder)


def test_every_command_of_the_table_names_a_recipe():
    from genpool.recipes import recipe_names

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"genpool train ([a-z0-9-]+) ", text))
    assert named <= set(recipe_names())
    assert {"snli", "multinli", "age", "yelp", "rules"} <= named

"""The README is run: every command and every Python block, in order, in an empty folder."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.documents import Reader, blocks_of, reading, run_command

ROOT = Path(__file__).parent.parent
BLOCKS = blocks_of(ROOT / "README.md")


def without_comment(line: str) -> str:
    return re.sub(r"\s+#.*", "", line).strip()


def test_set_up_has_exactly_two_commands() -> None:
    first = next(block.text for block in BLOCKS if block.language == "bash")
    assert [without_comment(line) for line in first.splitlines()] == ["make demo", "make test"]


# `make test` itself is not run here: it is what runs this test.
def test_make_demo_encodes_compares_explains_and_classifies() -> None:
    # Without the installation, which would put the pinned versions in the place of the lowest ones.
    installed = ["-o", f"{sys.prefix}/base"]
    printed = run_command(["make", "demo", f"VENV={sys.prefix}", *installed], ROOT)
    for part in ("3 sentences ->", "head 1", "entailment", "contradiction", "Next:"):
        assert part in printed


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with reading(tmp_path_factory.mktemp("readme")) as person:
        yield person


@pytest.mark.parametrize("number", range(1, len(BLOCKS)))
def test_every_block_runs_after_those_before_it(number: int, reader: Reader) -> None:
    reader.run(BLOCKS[number])


def test_every_command_of_the_table_names_a_recipe() -> None:
    from genpool.recipes import recipe_names

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"genpool train ([a-z0-9-]+) ", text))
    assert named <= set(recipe_names())
    assert {"snli", "multinli", "age", "yelp", "rules"} <= named

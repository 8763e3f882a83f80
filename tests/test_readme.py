"""The README is run: every command and every Python block, in order, in an empty folder."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from genpool.recipes import recipe_names
from tests.helpers.documents import blocks_of, reading, run_command

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks_of(ROOT / "README.md")


def test_set_up_has_exactly_two_commands() -> None:
    first = next(block.text for block in BLOCKS if block.language == "bash")
    commands = [re.sub(r"\s+#.*", "", line).strip() for line in first.splitlines()]
    assert commands == ["make demo", "make test"]


def test_every_recipe_that_is_named_exists() -> None:
    named = set(re.findall(r"genpool train ([a-z0-9-]+) ", TEXT))
    assert named and named <= set(recipe_names())


def test_every_link_leads_to_a_file_of_the_repository() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", TEXT)
    inside = [link.partition("#")[0] for link in links if not link.startswith("https://")]
    assert inside and [link for link in inside if not (ROOT / link).exists()] == []


# `make test` itself is not run here: it is what runs this test.
@pytest.mark.docs
def test_make_demo_encodes_compares_explains_and_classifies() -> None:
    # Without the installation, which would put the pinned versions in the place of the lowest ones.
    installed = ["-o", f"{sys.prefix}/base"]
    printed = run_command(["make", "demo", f"VENV={sys.prefix}", *installed], ROOT)
    for part in ("3 sentences ->", "head 1", "entailment", "contradiction", "Next:"):
        assert part in printed


@pytest.mark.docs
def test_every_block_runs_after_those_before_it(tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        for block in BLOCKS[1:]:
            reader.run(block)

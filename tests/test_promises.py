"""docs/promises.md: every promise names tests, and the tests exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "| shown by" not in line]


def named_tests(text: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)


def test_every_promise_names_a_test() -> None:
    assert len(ROWS) >= 20
    assert [row for row in ROWS if not named_tests(row)] == []


def test_the_named_tests_exist() -> None:
    named = named_tests(PAGE)
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert named and missing == []


def test_every_link_leads_to_a_file() -> None:
    links = re.findall(r"\]\((\.\./[^)#]+)\)", PAGE)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).resolve().is_file()] == []

"""How a page of `results/` is written: its tables, the versions that made it, its file."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.data import REPOSITORY
from genpool.disk.files import markdown_table
from genpool.training.report import versions

__all__ = [
    "markdown_table",
    "one_line",
    "page_path",
    "versions_line",
    "write_page",
    "write_section",
]


def versions_line() -> str:
    """Returns the versions of Python and the packages, as `python 3.11.7, genpool 0.1.0, ...`."""
    return ", ".join(f"{name} {version}" for name, version in versions().items())


def one_line(text: str) -> str:
    """Returns a wrapped paragraph as one line."""
    return " ".join(text.split())


def page_path(name: str) -> Path:
    """Returns the path of a page, such as `results/embedded.md` for `embedded`."""
    return REPOSITORY / "results" / f"{name}.md"


def write_page(name: str, parts: list[str]) -> None:
    """Writes a page made of parts with an empty line between them, and prints it."""
    text = "\n\n".join(part.strip("\n") for part in parts) + "\n"
    print(text)
    page_path(name).write_text(text, encoding="utf-8")


def write_section(name: str, heading: str, parts: list[str]) -> None:
    """Writes one section of a page, in the place of an earlier one or at the end; prints it."""
    path = page_path(name)
    page = path.read_text(encoding="utf-8") if path.is_file() else f"# {name.capitalize()}\n"
    section = "\n\n".join([f"## {heading}", *(part.strip("\n") for part in parts)]) + "\n"
    print(section)
    pattern = re.compile(rf"^## {re.escape(heading)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if pattern.search(page):
        followed = pattern.sub(lambda _: section + "\n", page, count=1)
    else:
        followed = f"{page.rstrip()}\n\n{section}"
    path.write_text(followed.rstrip() + "\n", encoding="utf-8")

"""How a page of `results/` is written: its tables, the versions that made it, its file."""

from __future__ import annotations

from pathlib import Path

from benchmarks.data import REPOSITORY
from genpool.disk.markdown import markdown_table
from genpool.training.tracking import versions

__all__ = ["markdown_table", "one_line", "page_path", "versions_line", "write_page"]


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

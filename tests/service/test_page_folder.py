"""The page's files: no build step, no outside address, nothing that the policy would refuse."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import genpool

ROOT = Path(__file__).parents[2]
PAGE = Path(genpool.__file__).parent / "service" / "page"
FILES = sorted(PAGE.iterdir())
MAX_BYTES = 100_000


class Collector(HTMLParser):
    """Collects elements with their attributes, and the text inside script and style elements."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.inline += data


def index() -> Collector:
    collector = Collector()
    collector.feed((PAGE / "index.html").read_text(encoding="utf-8"))
    return collector


def test_the_page_has_no_inline_script_style_or_handler() -> None:
    page = index()
    assert page.inline.strip() == ""
    attributes = {name for _, attrs in page.elements for name in attrs}
    assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_every_file_that_the_page_names_exists_and_every_file_is_used() -> None:
    page = index()
    named = {attrs.get("src") or attrs.get("href") for _, attrs in page.elements}
    files = {name.removeprefix("static/") for name in named if name and name.startswith("static/")}
    waiting = list(files)
    while waiting:
        source = (PAGE / waiting.pop()).read_text(encoding="utf-8")
        imports = set(re.findall(r'from "\./(.+?)"', source)) - files
        files |= imports
        waiting += imports
    assert files | {"index.html"} == {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_names_no_outside_address_and_parses_no_markup(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", text)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert "@import" not in text and "url(" not in text
    assert len(text.splitlines()) <= 400 and len(text) < MAX_BYTES


def test_every_element_that_a_module_asks_for_is_in_the_page() -> None:
    ids = [attrs["id"] for _, attrs in index().elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    modules = "".join(path.read_text(encoding="utf-8") for path in FILES if path.suffix == ".js")
    assert set(re.findall(r'byId\("([a-z-]+)"\)', modules)) <= set(ids)


def test_the_readme_shows_a_picture_of_the_page_that_is_quick_to_load() -> None:
    assert "(results/page.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    picture = (ROOT / "results" / "page.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) < 300_000

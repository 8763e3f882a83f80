"""Links of a built site, checked without a network: files and anchors; of other hosts, the form."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+|localhost|\d+(\.\d+){3}", re.IGNORECASE)


class _Page(HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Returns "PAGE: LINK" for every link of a site that leads to no file, or to no anchor."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        page = pages[path.resolve()] = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    return [
        f"{path.relative_to(site.resolve()).as_posix()}: {link}"
        for path, page in pages.items()
        for link in dict.fromkeys(page.links)
        if not _leads_somewhere(link, path, site.resolve(), pages)
    ]


def _leads_somewhere(link: str, path: Path, site: Path, pages: dict[Path, _Page]) -> bool:
    if any(character.isspace() for character in link):
        return False
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return HOST.fullmatch(parts.hostname or "") is not None
    if parts.scheme in ("mailto", "data", "javascript"):
        return True
    if parts.scheme or parts.netloc:
        return False
    address, anchor = urldefrag(link)
    address = unquote(address.partition("?")[0])
    # An address from the root of the host, on the page of missing addresses, is of the site.
    start = site / address.lstrip("/") if address.startswith("/") else path.parent / address
    target = start.resolve() if address else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    return not anchor or target not in pages or unquote(anchor) in pages[target].anchors

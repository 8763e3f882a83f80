"""A service with the embedded models and an index, and a real browser that looks at its page."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.service.conftest import running_service

ROOT = Path(__file__).parents[3]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
#: so that a page that never gets ready fails instead of waiting for ever
MAX_WAIT_SECONDS = 180
SENTENCES = [
    "A small dog runs along the beach.",
    "The price of oil fell again.",
    "Two children are building a castle of sand.",
    "An animal is moving quickly.",
]

#: the labels of elements, for `evaluate_all`
LABELS = "nodes => nodes.map(node => node.getAttribute('aria-label'))"

Explain = Callable[..., dict[str, Any]]
OpenPage = Callable[..., Any]


def wait_for_words(page: Any, *texts: str) -> None:
    """Waits until the page explains a sentence of these words, and no other."""
    row = page.locator("#words .words").last
    for place, text in enumerate(texts):
        exact = re.compile(f"^{re.escape(text)}$")
        row.locator(f".word:nth-child({place + 1})", has_text=exact).wait_for()
    row.locator(f".word:nth-child({len(texts) + 1})").wait_for(state="detached")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a browser."""
    pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    return program


@pytest.fixture(scope="session")
def service(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service with the embedded models and an index of four sentences."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "sentences.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    encode = ["encode", str(folder / "sentences.txt"), "-o", str(folder / "index")]
    subprocess.run([sys.executable, "-m", "genpool", *encode], check=True, capture_output=True)
    with running_service("--index", str(folder / "index")) as (_, address):
        yield address


def ask(address: str, **body: Any) -> dict[str, Any]:
    """What a service answers, asked without the page."""
    content: dict[str, Any] = httpx2.post(address, json=body, timeout=None).json()
    return content


@pytest.fixture(scope="session")
def explain(service: str) -> Explain:
    """explain("A dog runs.") -> the answer of the service."""
    return lambda *texts: ask(f"{service}/explain", input=texts, dimension_weights=True)


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which looks for barriers in a page."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm install --no-save axe-core")
    return AXE.read_text(encoding="utf-8")


# One browser per file: while it is open, no other test of this process can run an event loop.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Any, service: str) -> Iterator[OpenPage]:
    """open_page(hash="", width=1280, ready="#details", **options) -> a page of the service.

    `ready` is visible when it returns; `prepare(page)` is called before the page is loaded; other
    options are those of playwright's new_context. At the end there must be no message in the
    console, except those that contain `expected`, and no request to any other host.
    """
    complaints: list[str] = []
    allowed: list[str] = []

    def make(
        hash: str = "",
        *,
        address: str = service,
        width: int = 1280,
        ready: str | None = "#details",
        expected: str | None = None,
        prepare: Callable[[Any], None] | None = None,
        **options: Any,
    ) -> Any:
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, reduced_motion="reduce", **options)
        page = context.new_page()
        page.set_default_timeout(1000 * MAX_WAIT_SECONDS)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requested(request.url, address))
        if expected is not None:
            allowed.append(expected)
        if prepare is not None:
            prepare(page)
        page.goto(f"{address}/{hash}")
        if ready is not None:
            page.wait_for_selector(ready, state="visible")
        return page

    def requested(url: str, address: str) -> None:
        if not url.startswith(f"{address}/"):
            complaints.append(f"a request to {url}")

    yield make
    for context in browser.contexts:
        context.close()
    assert [text for text in complaints if not any(part in text for part in allowed)] == []

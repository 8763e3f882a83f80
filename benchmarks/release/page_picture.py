"""The picture of the service's page that README.md shows.

    genpool serve --port 8000 &
    python -m benchmarks.release.page_picture [http://127.0.0.1:8000]

Writes results/page.png: the page in Chromium with the embedded models, the left half in light
colours and the right half in dark ones. Needs playwright, Chromium and Pillow.
"""

from __future__ import annotations

import io
import shutil
import sys
from typing import Literal
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from benchmarks.data import REPOSITORY

PICTURE = REPOSITORY / "results" / "page.png"
WIDTH, HEIGHT = 1240, 1398
MAX_BYTES = 300_000
STATE = {"first": "A small brown dog runs along the beach with a red ball."}


def screenshot(browser: Browser, address: str, scheme: Literal["light", "dark"]) -> Image.Image:
    """Returns the upper part of the page in light or dark colours."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{address}/#{urlencode(STATE)}")
    page.wait_for_selector("#details", state="visible")
    picture = Image.open(io.BytesIO(page.screenshot()))
    context.close()
    return picture.convert("RGB")


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        both = screenshot(browser, address, "light")
        dark = screenshot(browser, address, "dark")
        browser.close()
    both.paste(dark.crop((WIDTH // 2, 0, WIDTH, HEIGHT)), (WIDTH // 2, 0))
    both.save(PICTURE, optimize=True)
    size = PICTURE.stat().st_size
    print(f"{PICTURE}: {size:,} bytes")
    if size > MAX_BYTES:
        raise SystemExit(f"larger than {MAX_BYTES:,} bytes: choose a smaller HEIGHT")


if __name__ == "__main__":
    main()

"""The site: its pages are run like the README, its notebooks too; it has no warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.documents import blocks_of, environment, reading

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if blocks_of(page))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
#: the largest notebook, with its outputs
MAX_NOTEBOOK_KB = 100


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    with reading(tmp_path) as person:
        for block in blocks_of(page):
            person.run(block)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_outputs_are_small(notebook: Path) -> None:
    from benchmarks.release.run_notebooks import run_notebook

    executed = run_notebook(notebook)
    assert all(cell.execution_count for cell in executed.cells if cell.cell_type == "code")
    assert notebook.stat().st_size < 1024 * MAX_NOTEBOOK_KB
    kept = notebook.read_text(encoding="utf-8")
    assert '"output_type"' in kept and str(Path.home()) not in kept


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    build = ["-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(out)]
    quiet = {**environment(), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, *build]
    finished = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "WARNING" not in finished.stderr
    return out


def test_every_page_of_the_navigation_is_there(site: Path) -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = re.findall(r"^ +- ([a-z0-9_/]+)\.(?:md|ipynb)$", text, re.MULTILINE)
    assert len(pages) > 25
    for page in pages:
        folder = page.removesuffix("index")
        assert (site / folder / "index.html").is_file(), page


def test_every_page_of_results_is_in_the_navigation(site: Path) -> None:
    page = (site / "results" / "index.html").read_text(encoding="utf-8")
    navigation = page[page.index("md-nav--primary") : page.index("<article")]
    for result in (ROOT / "results").glob("*.md"):
        assert f'href="{result.stem}/"' in navigation, result


def test_every_command_and_every_option_is_in_the_reference(site: Path) -> None:
    import typer.main

    from genpool.cli import app

    page = (site / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    group: Any = typer.main.get_command(app)
    assert group.commands
    for name, command in group.commands.items():
        assert f"genpool {name}" in page
        options = [option for parameter in command.params for option in parameter.opts]
        assert not [option for option in options if option[:2] == "--" and option not in page]


def test_every_setting_is_in_the_reference(site: Path) -> None:
    import genpool.reproduction  # noqa: F401 - registers its readers
    from genpool.data.reader import READERS
    from genpool.training.settings import RunSettings

    page = (site / "reference" / "settings" / "index.html").read_text(encoding="utf-8")
    for section in ("data", "start", "vocabulary", "vectors", "text", "embedding", "training"):
        for setting in vars(getattr(RunSettings(), section)):
            assert f"<code>{setting}</code>" in page, f"{section}.{setting}"
    for reader in READERS:
        for option in READERS.options(reader):
            assert f"<code>{option}</code>" in page, f"{reader}: {option}"


def test_every_public_name_of_the_package_is_in_the_reference(site: Path) -> None:
    import genpool
    from genpool import encoder, pooling
    from genpool.reproduction import encoders

    pages = (site / "reference").glob("*/index.html")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    names = [*genpool.__all__, *pooling.__all__, *encoder.__all__, *encoders.__all__]
    elsewhere = {"GenpoolError", "__version__", "pooling", "penalties", "POOLINGS", "ENCODERS"}
    headings = set(re.findall(r'id="genpool\.[\w.]*?(\w+)"', text))
    assert not [name for name in names if name not in elsewhere and name not in headings]


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', text)
        assert not loaded, page

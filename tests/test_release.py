"""A release: one version everywhere, a wheel with all that is needed, workflows that agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import genpool

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_written_once_and_cited_alike() -> None:
    assert PROJECT["dynamic"] == ["version"] and "version" not in PROJECT
    assert yaml.safe_load(read("CITATION.cff"))["version"] == genpool.__version__
    changes = read("CHANGELOG.md")
    assert re.findall(r"^## \[(.+?)\]", changes, re.MULTILINE)[0] == "Unreleased"
    next_or_last = re.search(r"This will be version (\S+),|^## \[(\d.*?)\]", changes, re.MULTILINE)
    assert next_or_last and genpool.__version__ in next_or_last.groups()


def test_the_changelog_has_the_headings_that_readers_expect() -> None:
    allowed = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    headings = re.findall(r"^### (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert headings and set(headings) <= allowed
    dates = re.findall(r"^## \[\d.*$", read("CHANGELOG.md"), re.MULTILINE)
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in dates)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from the sources by the backend that is installed here."""
    out = tmp_path_factory.mktemp("wheel")
    build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run([sys.executable, *build], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.glob("*.whl")
    assert path.name == f"genpool-{genpool.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(path)


@pytest.mark.docs
def test_the_wheel_has_what_the_package_has_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    package = ROOT / "src" / "genpool"
    sources = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == sources
    needed = """py.typed recipes/snli.toml embedded/encoder/model.safetensors
        embedded/nli/model.safetensors service/page/index.html service/page/main.js
        service/page/theme.css service/page/icon.svg inference/explanation.css"""
    assert {f"genpool/{name}" for name in needed.split()} <= names
    kinds = {Path(name).suffix for name in names}  # neither tests nor data sets
    assert kinds <= {
        *(".py", ".typed", ".toml", ".json", ".safetensors", ".md", ".txt"),
        *(".html", ".css", ".js", ".svg"),  # the page of the service
    }
    assert not [name for name in wheel.namelist() if re.search(r"test|golden|bench\w*/", name)]
    assert sum(info.compress_size for info in wheel.infolist()) < 25e6


@pytest.mark.docs
def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = wheel.read(name).decode()
    for line in (
        f"Version: {genpool.__version__}",
        "License-Expression: MIT",
        "Requires-Python: >=3.11",
        "Classifier: Typing :: Typed",
    ):
        assert f"\n{line}\n" in metadata
    (scripts,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "genpool = genpool.cli:main" in wheel.read(scripts).decode()


def requirements() -> dict[str, Requirement]:
    """The packages that the base and all extras for users ask for."""
    extras = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"]]
    for extra, wanted in extras.items():
        if extra not in ("test", "dev", "docs", "all"):
            lines += wanted
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(requirement.name): requirement for requirement in parsed}


def pins(name: str) -> dict[str, str]:
    """The versions of a file of constraints."""
    lines = [line.split("#")[0].strip() for line in read(name).splitlines()]
    pairs = [line.split("==") for line in lines if line]
    return {canonicalize_name(package): version for package, version in pairs}


def lower_bound(requirement: Requirement) -> str:
    (bound,) = [part.version for part in requirement.specifier if part.operator == ">="]
    return bound


def test_packages_are_pinned_to_the_lowest_promised_version_and_within_the_promise() -> None:
    lowest = pins("constraints-lowest.txt")
    # That of torch is named by the workflow: make has another default, which is smaller to install.
    (lowest["torch"],) = re.findall(r"LOWEST_TORCH=(\S+)", read(".github/workflows/test.yml"))
    pinned = pins("constraints.txt")
    for package, requirement in requirements().items():
        assert Version(lowest[package]) == Version(lower_bound(requirement)), package
        assert requirement.specifier.contains(pinned[package]), package


def test_workflows_try_every_version_of_python_that_is_promised() -> None:
    matrix = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]["test"]["strategy"]
    classifiers = [name for name in PROJECT["classifiers"] if "Python :: 3." in name]
    promised = [name.rpartition(" ")[2] for name in classifiers]
    assert matrix["matrix"]["python"] == promised
    assert promised[0] == PROJECT["requires-python"].removeprefix(">=")
    systems = {name.partition("-")[0] for name in matrix["matrix"]["os"]}
    assert systems == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_that_exist_with_pinned_actions(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    for step in steps:
        assert set(re.findall(r"^make ([a-z-]+)", step.get("run", ""))) <= targets
        assert "uses" not in step or re.search(r"@(release/)?v\d+$", step["uses"])
    assert any("uses" in step for step in steps) and any("run" in step for step in steps)

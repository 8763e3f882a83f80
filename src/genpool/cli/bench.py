"""genpool bench"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import genpool
from genpool.errors import InputError


def bench(
    only: Annotated[str | None, typer.Option(help="Run only the comparison of this name.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Repetitions of each side.")] = 5,
    json: Annotated[
        Path | None, typer.Option(help="Also write the rows to this file, as JSON.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Also write the page results/bench.md.")
    ] = False,
) -> None:
    """Compare speed and memory with alternatives; needs a clone of the repository.

    Example: genpool bench --only startup --rounds 1
    """
    root = _repository()
    sys.path.insert(0, str(root))
    comparisons = import_module("benchmarks.speed.comparisons")
    comparisons.run(only, rounds, json, root / "results" / "bench.md" if write else None)


def has_clone() -> bool:
    """Returns whether the comparisons are there, which are not part of the package."""
    return _clone() is not None


def _clone() -> Path | None:
    """Returns the repository, which holds the folder `benchmarks`, if there is one."""
    folders = [Path(genpool.__file__).parents[2]]
    with suppress(FileNotFoundError):  # the working folder may itself be gone
        folders.insert(0, Path.cwd())
    for folder in folders:
        if (folder / "benchmarks" / "speed" / "comparisons.py").is_file():
            return folder
    return None


def _repository() -> Path:
    folder = _clone()
    if folder is not None:
        return folder
    raise InputError(
        "the comparisons are in the folder benchmarks of the repository, which is not part of the "
        "package. Clone the repository and run `make bench` there."
    )

"""genpool bench"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import genpool
from genpool.errors import InputError


def bench(
    only: Annotated[str | None, typer.Option(help="Run one comparison alone.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each side.")] = 5,
    json: Annotated[Path | None, typer.Option(help="Also write the rows here.")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Also write the page results/bench.md.")
    ] = False,
) -> None:
    """Compare speed and memory with other ways to do the same; in a clone of the repository.

    Example: genpool bench --only import
    """
    root = _repository()
    sys.path.insert(0, str(root))
    comparisons = import_module("benchmarks.comparisons")
    comparisons.run(only, rounds, json, root / "results" / "bench.md" if write else None)


def _repository() -> Path:
    """Where the folder `benchmarks` is: it is part of the repository, not of the package."""
    for folder in (Path.cwd(), Path(genpool.__file__).parents[2]):
        if (folder / "benchmarks" / "comparisons.py").is_file():
            return folder
    raise InputError(
        "the comparisons are in the repository of genpool, in its folder benchmarks; expected to "
        "find it here. Clone the repository, run `make bench` there."
    )

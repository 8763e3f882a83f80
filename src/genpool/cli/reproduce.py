"""genpool reproduce"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from genpool.cli import options
from genpool.cli.terminal import stop_with_message
from genpool.errors import InputError


def reproduce(
    what: Annotated[
        list[str],
        Argument(
            help="table1, table2, table3, table4, figure2, figure3 or all; or: status DIR, "
            "report DIR.",
            metavar="WHAT...",
        ),
    ],
    data: Annotated[Path | None, Option(help="Folder of the data sets.")] = None,
    scale: Annotated[
        str,
        Option(
            metavar="paper|small|tiny",
            help="paper: the official data; small: minutes per model; tiny: seconds.",
        ),
    ] = "small",
    out: Annotated[
        Path | None, Option(help="Folder of the reproduction; reproduction-SCALE by default.")
    ] = None,
    jobs: Annotated[int, Option(min=1, help="Cells trained at once, one thread each.")] = 1,
    only: Annotated[str | None, Option(help="Title of a single row to run.")] = None,
    sentence: Annotated[
        str | None, Option(help="Sentence of figure 3 instead of the paper's.")
    ] = None,
    quiet: Annotated[bool, Option("--quiet", help="No progress.")] = False,
    plugin: options.Plugin = None,
) -> None:
    """Train the models of the paper's tables and figures and write a report.

    Finished cells are never run twice: the same command continues after any stop.

    Example: genpool reproduce table1 --scale tiny --out reproduction
    """
    from genpool.reproduction.report import write_report
    from genpool.reproduction.reproduction import Reproduction
    from genpool.reproduction.reproduction import reproduce as run

    if what[0] in ("status", "report"):
        if len(what) != 2:
            raise InputError(f"got {' '.join(what)!r}; expected: genpool reproduce {what[0]} DIR.")
        reproduction = Reproduction(what[1])
        if what[0] == "status":
            typer.echo(reproduction.status())
        else:
            typer.echo(f"report: {write_report(reproduction, sentence)}")
        return
    folder = out or Path(f"reproduction-{scale}")
    with stop_with_message("stopped; the same command continues, and trains nothing twice"):
        failures = run(what, folder, scale, data, jobs, only, sentence, not quiet)
    typer.echo(f"report: {folder / 'report.md'}")
    if failures:
        typer.echo(f"{len(failures)} cells failed:", err=True)
        for line in failures:
            typer.echo(f"  {line}", err=True)
        raise typer.Exit(1)

"""genpool train"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe of the package, or your own .toml file.")],
    data: Annotated[
        str | None, typer.Option(help="Folder or file of the data (a name, for the hub).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/RECIPE if not given.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting: section.key=value. Repeatable.")
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(help="Train one run per value and choose on dev: section.key=value,value,..."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that stopped.")] = False,
    bad_rows: Annotated[
        str | None, typer.Option(help="error: stop at a bad row; skip: count and leave out.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train a model.

    Example: genpool train rules --out runs/rules --set training.epochs=2
    """
    from genpool.recipes import recipe_text
    from genpool.training import read_settings
    from genpool.training import train as run
    from genpool.training.loop import destroy_process_group
    from genpool.training.selection import select as choose

    text = recipe_text(recipe)
    overrides = list(set_ or [])
    if bad_rows is not None:
        overrides.append(f'reader.bad_rows="{bad_rows}"')
    folder = out or Path("runs") / Path(recipe).stem
    if select is not None:
        value, model, results = choose(text, overrides, select, data, folder, resume, not quiet)
        report, chosen = "selection.md", f" ({select.partition('=')[0].strip()} = {value})"
    else:
        settings = read_settings(text, overrides, recipe)
        results = run(settings, data, folder, resume, not quiet)
        model, report, chosen = folder / "best", "report.md", ""
    destroy_process_group()
    for name, each in results.items():
        typer.echo(f"{name} accuracy: {100 * each['accuracy']:.2f} %")
    if results:
        typer.echo(f"report: {folder / report}")
        typer.echo(f"model:  {model}{chosen}")

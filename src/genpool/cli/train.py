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
        Path | None, typer.Option(help="Folder of the run. Default: runs/RECIPE.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting: section.key=value. Repeatable.")
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            help="Train one run per value and choose on dev: section.key=value,value,... "
            "Repeatable: one run per combination."
        ),
    ] = None,
    no_test: Annotated[
        bool, typer.Option("--no-test", help="Do not score the test splits.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that stopped.")] = False,
    bad_rows: Annotated[
        str | None, typer.Option(help="error: stop at a bad row; skip: count and leave out.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show progress.")] = False,
) -> None:
    """Train a model.

    Example: genpool train rules --out runs/rules --set training.epochs=2
    """
    from genpool.recipes import recipe_text
    from genpool.training import read_settings
    from genpool.training import train as train_run
    from genpool.training.processes import destroy_process_group
    from genpool.training.selection import select as select_run

    text = recipe_text(recipe)
    overrides = list(set_ or [])
    if bad_rows is not None:
        overrides.append(f'reader.bad_rows="{bad_rows}"')
    folder = out or Path("runs") / Path(recipe).stem
    if select:
        choice = select_run(text, overrides, select, data, folder, resume, not quiet, not no_test)
        results, model, report = choice.results, choice.model, "selection.md"
        values = ", ".join(f"{key} = {value}" for key, value in choice.values.items())
        chosen = f" ({values})"
    else:
        settings = read_settings(text, overrides, recipe)
        results = train_run(settings, data, folder, resume, not quiet, not no_test)
        model, report, chosen = folder / "best", "report.md", ""
    destroy_process_group()
    for split, score in results.items():
        typer.echo(f"{split} accuracy: {100 * score['accuracy']:.2f} %")
    if results:
        typer.echo(f"report: {folder / report}")
        typer.echo(f"model:  {model}{chosen}")

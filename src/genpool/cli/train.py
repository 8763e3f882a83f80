"""genpool train"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genpool.cli.table_options import (
    EncodingOption,
    FirstOption,
    LabelOption,
    ScoreOption,
    SecondOption,
)


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe of the package, or your own .toml file.")],
    data: Annotated[
        str | None, typer.Option(help="Folder or file of the data (a name, for the hub).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run. Default: runs/RECIPE.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="embedded|FOLDER|scratch",
            help="The model to start from: embedded, the folder of a model, or scratch for new "
            "weights. Default: that of the recipe.",
        ),
    ] = None,
    freeze: Annotated[
        str | None,
        typer.Option(
            metavar="nothing|words|encoder", help="What is not trained of the start model."
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="label|score", help="What is learned: a label, or a column of scores."
        ),
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
    first: FirstOption = None,
    second: SecondOption = None,
    label: LabelOption = None,
    score: ScoreOption = None,
    encoding: EncodingOption = None,
    bad_rows: Annotated[
        str | None,
        typer.Option(metavar="error|skip", help="Stop at a bad row, or count it and leave it out."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show progress.")] = False,
) -> None:
    """Train a model.

    Example: genpool train rules --out runs/rules --set training.epochs=2

    Your own table: genpool train texts --data reviews.csv
    """
    from genpool.recipes import recipe_text
    from genpool.training import read_settings
    from genpool.training import train as train_run
    from genpool.training.fitting import start_recipe
    from genpool.training.loop import end_process_group
    from genpool.training.report import score_text
    from genpool.training.selection import select as select_run

    text = recipe_text(recipe if start is None else start_recipe(recipe, start))
    options = {
        "start.model": start,
        "start.freeze": freeze,
        "data.task": task,
        "reader.first": first,
        "reader.second": second,
        "reader.label": label,
        "reader.score": score,
        "reader.encoding": encoding,
        "reader.bad_rows": bad_rows,
    }
    values = {key: value for key, value in options.items() if value}
    overrides = set_ or []
    folder = out or Path("runs") / Path(recipe).stem
    if select:
        choice = select_run(
            text, overrides, select, data, folder, resume, not quiet, not no_test, values
        )
        results, model, report = choice.results, choice.model, "selection.md"
        chosen = f" ({', '.join(f'{key} = {value}' for key, value in choice.values.items())})"
    else:
        settings = read_settings(text, overrides, recipe, values)
        results = train_run(settings, data, folder, resume, not quiet, not no_test)
        model, report, chosen = folder / "best", "report.md", ""
    for split, scores in results.items():
        typer.echo(f"{split} {score_text(scores)}")
    if results:
        typer.echo(f"report: {folder / report}")
        typer.echo(f"model:  {model}{chosen}")
    end_process_group()

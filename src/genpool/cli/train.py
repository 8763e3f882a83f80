"""genpool train and genpool distil"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from genpool.cli import options


def train(
    recipe: Annotated[str, Argument(help="A recipe of the package, or your own .toml file.")],
    data: Annotated[
        str | None, Option(help="Folder or file of the data (a name, for the hub).")
    ] = None,
    out: Annotated[Path | None, Option(help="Folder of the run. Default: runs/RECIPE.")] = None,
    start: Annotated[
        str | None,
        Option(
            metavar="embedded|FOLDER|scratch",
            help="The model to start from: embedded, the folder of a model, or scratch for new "
            "weights. Default: that of the recipe.",
        ),
    ] = None,
    freeze: Annotated[
        str | None,
        Option(metavar="nothing|words|encoder", help="What is not trained of the start model."),
    ] = None,
    task: Annotated[
        str | None,
        Option(metavar="label|score", help="What is learned: a label, or a column of scores."),
    ] = None,
    set_: Annotated[
        list[str] | None, Option("--set", help="A setting: section.key=value. Repeatable.")
    ] = None,
    select: Annotated[
        list[str] | None,
        Option(
            help="Train one run per value and choose on dev: section.key=value,value,... "
            "Repeatable: one run per combination."
        ),
    ] = None,
    no_test: Annotated[bool, Option("--no-test", help="Do not score the test splits.")] = False,
    resume: options.Resume = False,
    first: options.First = None,
    second: options.Second = None,
    label: options.Label = None,
    score: options.Score = None,
    encoding: options.Encoding = None,
    bad_rows: Annotated[
        str | None,
        Option(metavar="error|skip", help="Stop at a bad row, or count it and leave it out."),
    ] = None,
    quiet: options.Quiet = False,
    plugin: options.Plugin = None,
) -> None:
    """Train a model.

    Example: genpool train rules --out runs/rules --set training.epochs=2

    Your own table: genpool train texts --data reviews.csv
    """
    from genpool.recipes import recipe_text
    from genpool.training import read_settings
    from genpool.training import train as train_run
    from genpool.training.fitting import start_recipe
    from genpool.training.report import score_text
    from genpool.training.selection import select as select_run
    from genpool.training.state import end_process_group

    text = recipe_text(recipe if start is None else start_recipe(recipe, start))
    chosen_settings = {
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
    values = {key: value for key, value in chosen_settings.items() if value}
    overrides = set_ or []
    folder = out or Path("runs") / Path(recipe).stem
    if select:
        choice = select_run(
            text,
            overrides,
            select,
            data,
            folder,
            resume,
            not quiet,
            not no_test,
            values,
            plugin or (),
        )
        results, model, report = choice.results, choice.model, "selection.md"
        chosen = f" ({', '.join(f'{key} = {value}' for key, value in choice.values.items())})"
    else:
        settings = read_settings(text, overrides, recipe, values, plugin or ())
        results = train_run(settings, data, folder, resume, not quiet, not no_test)
        model, report, chosen = folder / "best", "report.md", ""
    for split, scores in results.items():
        typer.echo(f"{split} {score_text(scores)}")
    if results:
        typer.echo(f"report: {folder / report}")
        typer.echo(f"model:  {model}{chosen}")
    end_process_group()


def distil(
    recipe: Annotated[str, Argument(help="A recipe of the package, or a .toml file.")],
    data: Annotated[Path, Option(help="Folder that contains the files of the corpus.")],
    out: Annotated[Path | None, Option(help="Folder of the run. Default: runs/RECIPE.")] = None,
    set_: Annotated[
        list[str] | None, Option("--set", help="A setting, section.key=value. Repeatable.")
    ] = None,
    resume: options.Resume = False,
    cache: Annotated[
        Path | None,
        Option(help="Folder of the teacher's vectors, which runs may share. Default: OUT/teacher."),
    ] = None,
    quiet: options.Quiet = False,
    plugin: options.Plugin = None,
) -> None:
    """Train a small encoder to return the vectors of a large one.

    Example: genpool distil embedded --data DATA --set vectors.path=glove.840B.300d.zip
    """
    from genpool.distillation import distil as run
    from genpool.distillation import read_distillation
    from genpool.recipes import recipe_text

    settings = read_distillation(recipe_text(recipe), set_ or (), recipe)
    folder = out or Path("runs") / Path(recipe).stem
    best = run(settings, data, folder, resume, cache, not quiet)
    for name, value in best.items():
        typer.echo(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}")
    typer.echo(f"model: {folder / 'best'}")

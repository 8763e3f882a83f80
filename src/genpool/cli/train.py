"""genpool train, genpool distil and genpool reproduce"""

from __future__ import annotations

from pathlib import Path

import typer
from typer import Argument, Option

from genpool.cli import options
from genpool.cli.terminal import stop_with_message
from genpool.errors import InputError


def train(
    recipe: str = Argument(help="A recipe of the package, or your own .toml file."),
    data: str | None = Option(None, help="Folder or file of the data (a name, for the hub)."),
    out: Path | None = Option(None, help="Folder of the run. Default: runs/RECIPE."),
    start: str | None = Option(
        None,
        metavar="embedded|FOLDER|scratch",
        help="The model to start from: embedded, the folder of a model, or scratch for new "
        "weights. Default: that of the recipe.",
    ),
    freeze: str | None = Option(
        None, metavar="nothing|words|encoder", help="What is not trained of the start model."
    ),
    task: str | None = Option(
        None, metavar="label|score", help="What is learned: a label, or a column of scores."
    ),
    set_: list[str] | None = Option(
        None, "--set", help="A setting: section.key=value. Repeatable."
    ),
    select: list[str] | None = Option(
        None,
        help="Train one run per value and choose on dev: section.key=value,value,... "
        "Repeatable: one run per combination.",
    ),
    no_test: bool = Option(False, "--no-test", help="Do not score the test splits."),
    resume: options.Resume = False,
    first: options.First = None,
    second: options.Second = None,
    label: options.Label = None,
    score: options.Score = None,
    encoding: options.Encoding = None,
    bad_rows: str | None = Option(
        None, metavar="error|skip", help="Stop at a bad row, or count it and leave it out."
    ),
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
    from genpool.training.loop import end_process_group
    from genpool.training.report import score_text
    from genpool.training.selection import select as select_run

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
        how = (data, folder, resume, not quiet, not no_test, values, plugin or ())
        choice = select_run(text, overrides, select, *how)
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
    recipe: str = Argument(help="A recipe of the package, or a .toml file."),
    data: Path = Option(help="Folder that contains the files of the corpus."),
    out: Path | None = Option(None, help="Folder of the run. Default: runs/RECIPE."),
    set_: list[str] | None = Option(
        None, "--set", help="A setting, section.key=value. Repeatable."
    ),
    resume: options.Resume = False,
    cache: Path | None = Option(
        None, help="Folder of the teacher's vectors, which runs may share. Default: OUT/teacher."
    ),
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


def reproduce(
    what: list[str] = Argument(
        help="table1, table2, table3, table4, figure2, figure3 or all; or: status DIR, report DIR.",
        metavar="WHAT...",
    ),
    data: Path | None = Option(None, help="Folder of the data sets."),
    scale: str = Option(
        "small",
        metavar="paper|small|tiny",
        help="paper: the official data; small: minutes per model; tiny: seconds.",
    ),
    out: Path | None = Option(
        None, help="Folder of the reproduction; reproduction-SCALE by default."
    ),
    jobs: int = Option(1, min=1, help="Cells trained at once, one thread each."),
    only: str | None = Option(None, help="Title of a single row to run."),
    sentence: str | None = Option(None, help="Sentence of figure 3 instead of the paper's."),
    quiet: bool = Option(False, "--quiet", help="No progress."),
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
        typer.echo("\n  ".join([f"{len(failures)} cells failed:", *failures]), err=True)
        raise typer.Exit(1)

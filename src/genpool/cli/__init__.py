"""The command line: one thin file per command. `python -m genpool` is the same."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from genpool import __version__
from genpool.cli import (
    bench,
    demo,
    distil,
    encode,
    evaluate,
    explain,
    export,
    predict,
    recipes,
    similarity,
    train,
)
from genpool.cli import search as search_command
from genpool.errors import GenpoolError, Interrupted

app = typer.Typer(
    name="genpool",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("train")(train.train)
app.command("distil")(distil.distil)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("encode")(encode.encode)
app.command("similarity")(similarity.similarity)
app.command("search")(search_command.search)
app.command("explain")(explain.explain)
app.command("export")(export.export)
app.add_typer(recipes.app, name="recipes")
app.command("bench")(bench.bench)
app.command("demo")(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"genpool {__version__}")
        raise typer.Exit


@app.callback()
def genpool(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="The version."),
    ] = False,
) -> None:
    """Sentence vectors by generalized pooling: train, evaluate, predict, encode, explain."""


def main() -> None:
    """Runs a command; a user's mistake is answered in words, not with a traceback."""
    try:
        app()
    except Interrupted as error:
        _say(str(error))
        sys.exit(130)
    except GenpoolError as error:
        _say(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _say(text: str) -> None:
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)

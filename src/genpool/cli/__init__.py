"""The command line: one thin file per command. `python -m genpool` is the same."""

from __future__ import annotations

import atexit
import gc
import sys

import typer
from rich.console import Console
from typer import Option

from genpool import __version__
from genpool.cli import encode, evaluate, explain, predict, probe, recipes, serve, train
from genpool.cli import search as search_commands
from genpool.cli.terminal import replace_unprintable
from genpool.errors import GenpoolError, Stopped

app = typer.Typer(
    name="genpool",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("train")(train.train)
app.command("distil")(train.distil)
app.command("probe")(probe.probe)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("encode")(encode.encode)
app.command("similarity")(explain.similarity)
app.command("search")(search_commands.search)
app.add_typer(search_commands.app, name="index")
app.command("explain")(explain.explain)
app.command("export")(serve.export)
app.command("reproduce")(train.reproduce)
app.command("serve")(serve.serve)
app.add_typer(recipes.app, name="recipes")
app.command("demo")(recipes.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"genpool {__version__}")
        raise typer.Exit


@app.callback()
def genpool(
    version: bool = Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Sentence vectors by generalized pooling: train, evaluate, predict, encode, explain."""


def main() -> None:
    """Runs a command; a mistake of the user is answered in words, not with a traceback.

    The exit code is 0, 2 after a mistake, or 130 after Ctrl-C.
    """
    replace_unprintable()
    # Before it ends, Python would search all objects of PyTorch for cycles, which nobody needs.
    atexit.register(gc.freeze)
    try:
        app()
    except Stopped as error:
        _print_error(str(error))
        sys.exit(130)
    except GenpoolError as error:
        _print_error(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _print_error(text: str) -> None:
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)

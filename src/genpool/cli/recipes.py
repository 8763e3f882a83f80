"""genpool recipes"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genpool.errors import FolderError
from genpool.recipes import RECIPE_GROUPS, recipe_names, recipe_text, recipe_title

app = typer.Typer(invoke_without_command=True)


@app.callback(invoke_without_command=True)
def list_recipes(context: typer.Context) -> None:
    """List, show or copy the training recipes of the package.

    Example: genpool recipes
    """
    if context.invoked_subcommand is None:
        _print_list()


def _print_list() -> None:
    width = max(map(len, recipe_names()))
    parts = []
    for group, names in RECIPE_GROUPS.items():
        lines = [f"  {name:{width}}  {recipe_title(name)}" for name in names]
        parts.append("\n".join([group, *lines]))
    typer.echo("\n\n".join(parts))


@app.command("list")
def list_() -> None:
    """List the recipes, as genpool recipes alone does.

    Example: genpool recipes list
    """
    _print_list()


@app.command()
def show(name: Annotated[str, typer.Argument(help="A recipe of the list.")]) -> None:
    """Print a recipe.

    Example: genpool recipes show snli
    """
    typer.echo(recipe_text(name), nl=False)


@app.command()
def copy(
    name: Annotated[str, typer.Argument(help="A recipe of the list.")],
    path: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
) -> None:
    """Write a recipe to a file of your own, to change it.

    Example: genpool recipes copy snli my.toml
    """
    text = recipe_text(name)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise FolderError(f"{path} already exists; choose another name.") from None
    except OSError as error:
        raise FolderError(f"{path} cannot be written: {error.strerror}") from error
    typer.echo(f"{path}: now train with it: genpool train {path} --data ...")

"""genpool distil"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def distil(
    recipe: Annotated[str, typer.Argument(help="A recipe of the package, or a .toml file.")],
    data: Annotated[Path, typer.Option(help="Folder that contains the files of the corpus.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run. Default: runs/RECIPE.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, section.key=value. Repeatable.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that stopped.")] = False,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the teacher's vectors, which runs may share. Default: OUT/teacher."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
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

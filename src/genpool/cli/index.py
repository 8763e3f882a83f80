"""genpool index"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genpool.errors import counted

Folder = Annotated[Path, typer.Argument(metavar="INDEX", help="A folder made by encode -o INDEX/.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def change() -> None:
    """Look at an index, delete rows, or prepare it for fast searches.

    Example: genpool index info index
    """


@app.command()
def info(folder: Folder) -> None:
    """Print what an index holds: rows, dimensions, columns, lists, and its model.

    Example: genpool index info index
    """
    from genpool.search import SearchIndex

    card = SearchIndex.open(folder).card
    typer.echo(f"rows:        {card.rows:,}")
    typer.echo(f"dimensions:  {card.dim:,}{', of length 1' if card.normalized else ''}")
    names = [f"{name} (id)" if name == card.id else name for name in card.columns]
    typer.echo(f"columns:     {', '.join(names) or 'none'}")
    typer.echo(f"lists:       {f'{card.lists:,}' if card.lists else 'none: searches are exact'}")
    typer.echo(f"model:       {card.model}")


@app.command()
def delete(
    folder: Folder,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the rows to delete.")],
) -> None:
    """Delete the rows with these ids; the index was made with encode --id COLUMN.

    Example: genpool index delete index a1 a2
    """
    from genpool.search import delete_rows

    typer.echo(f"deleted {counted(delete_rows(folder, ids), 'row')} of {folder}")


@app.command()
def build(folder: Folder) -> None:
    """Make lists of similar rows, for approximate searches of large indexes (extra faiss).

    A search then reads a few lists instead of all rows; search --exact still reads all of them.

    Example: genpool index build index
    """
    from genpool.search import build_lists

    typer.echo(f"{folder}: {build_lists(folder):,} lists")

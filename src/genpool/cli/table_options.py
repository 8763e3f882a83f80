"""What the commands that read a table have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from genpool.data.base import Reader

BadRows = Annotated[
    str, typer.Option("--bad-rows", help="error: stop at a bad row; skip: count and leave out.")
]


def report_skipped(reader: Reader) -> None:
    """Says on standard error how many rows were left out, and why."""
    if reader.skipped:
        counts = ", ".join(f"{count:,} {why}" for why, count in reader.skipped.items())
        typer.echo(f"rows left out: {counts}", err=True)

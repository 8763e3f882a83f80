"""What the commands that read a data set have in common."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genpool.errors import ConfigError

if TYPE_CHECKING:
    from genpool.data.reader import Reader
    from genpool.jobs.tables import TablePredictions


class BadRows(StrEnum):
    """What happens to a row that cannot be used."""

    ERROR = "error"
    SKIP = "skip"


# Written out, because importing the readers would slow down every --help; a test compares.
class ReaderName(StrEnum):
    """The readers of files, by name."""

    TABLE = "table"
    SNLI = "snli"
    MULTINLI = "multinli"
    YELP = "yelp"
    AGE = "age"
    HUB = "hub"


BadRowsOption = Annotated[
    BadRows, typer.Option("--bad-rows", help="Stop at a bad row, or count it and leave it out.")
]
ReaderOption = Annotated[
    ReaderName,
    typer.Option(
        "--reader",
        help="What DATA is: your own table, the official files of SNLI, MultiNLI, Yelp or PAN "
        "(age), or the name of a data set on the Hugging Face hub.",
    ),
]
SplitOption = Annotated[
    str | None, typer.Option("--split", metavar="NAME", help="Split of DATA, if it has several.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="READER.KEY=VALUE",
        help="An option of the reader, as for train: reader.seed=1. Repeatable.",
    ),
]
FirstOption = Annotated[
    str | None, typer.Option("--first", help="Column of the (first) sentence, in a table.")
]
SecondOption = Annotated[
    str | None, typer.Option("--second", help="Column of the second sentence, in a table.")
]
LabelOption = Annotated[
    str | None, typer.Option("--label", help="Column of the gold label, in a table.")
]
ScoreOption = Annotated[
    str | None, typer.Option("--score", help="Column of the score, in a table.")
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Encoding of a table that is not UTF-8: cp1252, utf-16."
    ),
]
TokenizedOption = Annotated[
    bool, typer.Option("--tokenized", help="The table holds tokens joined by spaces.")
]


def open_data(
    path: str,
    reader: ReaderName,
    labelled: bool,
    bad_rows: BadRows,
    settings: Sequence[str] | None,
    model: str | None = None,
    **columns: str | bool | None,
) -> Reader:
    """Returns the reader of a data set, with the options of the command line.

    Args:
        path: the file, folder or name of the data.
        reader: which reader.
        labelled: whether rows must have a gold label.
        bad_rows: what happens to a row that cannot be used.
        settings: values of --set.
        model: the folder of a model, whose columns a table may have too. Default None.
        **columns: options of tables; None and False are not passed on.
    """
    from genpool.data.columns import read_trained_columns
    from genpool.data.readers import open_reader, reader_options

    known = reader_options(reader)
    options: dict[str, Any] = {name: value for name, value in columns.items() if value}
    if not labelled and "labelled" in known:
        options["labelled"] = False
    if "preferred" in known:
        options["preferred"] = read_trained_columns(model)
    options |= _parse_settings(reader, settings or ())
    return open_reader(reader, path, **{"bad_rows": str(bad_rows), **options})


def _parse_settings(reader: ReaderName, settings: Sequence[str]) -> dict[str, Any]:
    if not settings:
        return {}
    from genpool.training.recipe_file import apply_overrides
    from genpool.training.settings import PARTS

    tables: dict[str, Any] = {"reader": {}}
    problems = apply_overrides(tables, settings, {})
    options = tables.pop("reader")
    problems += [f"{name!r} is no section of this command; expected reader." for name in tables]
    problems += PARTS["reader"].check("reader", str(reader), options)
    if problems:
        raise ConfigError(problems)
    return dict(options)


def report_skipped(reader: Reader) -> None:
    """Prints on standard error how many rows were left out, why, and what may help."""
    if reader.skipped:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in reader.skipped.items())
        typer.echo(f"rows left out: {counts}", err=True)
    if reader.skipped_advice is not None:
        typer.echo(reader.skipped_advice, err=True)


def report_without_text(table: TablePredictions) -> None:
    """Prints on standard error how many rows have no text; their labels are blind guesses."""
    if table.without_text:
        typer.echo(
            f"rows without text, labelled by a blind guess: {table.without_text:,}", err=True
        )

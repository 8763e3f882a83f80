"""Arguments and options that several commands share, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from genpool.disk.files import is_file, is_folder, uncompressed_name
from genpool.errors import ConfigError, DataError, InputError

if TYPE_CHECKING:
    from genpool.data.reader import Reader
    from genpool.text import TextPipeline

#: suffixes of the files that the commands read, apart from those of compression
FILE_SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
#: a single word with one of them at its end is a sentence
_SENTENCE_ENDS = (".", "!", "?")


def _load_plugins(modules: list[str] | None) -> list[str] | None:
    if modules:
        from genpool.registry import load_plugins

        load_plugins(modules)
    return modules


Plugin = Annotated[
    list[str] | None,
    Option(
        "--plugin",
        metavar="MODULE",
        callback=_load_plugins,
        is_eager=True,  # the other options may name what it registers
        help="Import this module of yours, which registers poolings, encoders or readers. "
        "Repeatable.",
    ),
]
Model = Annotated[
    Path | None, Option("--model", help="Folder of a model. Default: the embedded encoder.")
]
IndexArgument = Annotated[
    Path, Argument(metavar="INDEX", help="A folder made by encode -o INDEX/.")
]
Quiet = Annotated[bool, Option("--quiet", help="Do not show progress.")]
Resume = Annotated[bool, Option("--resume", help="Continue a run that stopped.")]
BadRows = Annotated[
    str,
    Option(
        "--bad-rows", metavar="error|skip", help="Stop at a bad row, or count it and leave it out."
    ),
]
ReaderName = Annotated[
    str,
    Option(
        "--reader",
        metavar="table|snli|multinli|hub",
        help="What DATA is: your own table, the official files of SNLI or MultiNLI, the name of a "
        "data set on the Hugging Face hub, or what a reader of a --plugin reads (yelp and age of "
        "genpool.reproduction: the files of Yelp and PAN).",
    ),
]
Split = Annotated[
    str | None, Option("--split", metavar="NAME", help="Split of DATA, if it has several.")
]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="READER.KEY=VALUE",
        help="An option of the reader, as for train: reader.seed=1. Repeatable.",
    ),
]
First = Annotated[str | None, Option("--first", help="Column of the (first) sentence, in a table.")]
Second = Annotated[
    str | None, Option("--second", help="Column of the second sentence, in a table.")
]
Label = Annotated[str | None, Option("--label", help="Column of the gold label, in a table.")]
Score = Annotated[str | None, Option("--score", help="Column of the score, in a table.")]
Encoding = Annotated[
    str | None,
    Option(
        "--encoding", metavar="NAME", help="Encoding of a table that is not UTF-8: cp1252, utf-16."
    ),
]
Tokenized = Annotated[bool, Option("--tokenized", help="The table holds tokens joined by spaces.")]


def split_model_argument(last: str, paths: Sequence[str]) -> tuple[str | None, str]:
    """Returns the two arguments [MODEL] LAST; None is the embedded model."""
    if not 1 <= len(paths) <= 2:
        raise InputError(f"got {len(paths)} paths; expected [MODEL] {last}.")
    return paths[0] if len(paths) == 2 else None, paths[-1]


def is_sentence(text: str) -> bool:
    """Returns whether an argument that may be a sentence or a file is meant as a sentence."""
    if is_file(text) or is_folder(text) or _has_file_suffix(text):
        return False
    one_word = text.split() == [text]
    return not one_word or (text.endswith(_SENTENCE_ENDS) and not text.startswith("."))


def _has_file_suffix(text: str) -> bool:
    return Path(uncompressed_name(Path(text))).suffix.lower() in FILE_SUFFIXES


def require_sentence(text: str) -> None:
    """Raises an error if an argument is not UTF-8, or is the name of a file, existing or not."""
    if is_file(text):
        raise DataError('is a file; expected a sentence, in quotes: "A man sleeps."', text)
    require_sentence_or_file(text)


def require_sentence_or_file(text: str) -> None:
    """Raises an error if an argument is neither a sentence nor an existing file."""
    if is_file(text):
        return
    if text.split() == [text] and _has_file_suffix(text):
        raise DataError("there is no such file, and it is not a sentence; check the name", text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        # Python has such bytes of an argument as lone surrogates.
        shown = text.encode("utf-8", "backslashreplace").decode("utf-8")
        raise InputError(
            f'"{shown}" is not UTF-8 text, from character {error.start + 1} on; set your terminal '
            "to UTF-8, or put the sentence into a UTF-8 file."
        ) from None


def open_data(
    path: str,
    reader: str,
    labelled: bool,
    bad_rows: str,
    settings: Sequence[str] | None,
    model: str | None = None,
    **columns: str | bool | None,
) -> Reader:
    """Returns the reader of a data set; of its `columns`, None and False are not passed on.

    `settings` are the values of --set. A table may have the columns that `model` was trained on.
    """
    from genpool.data.columns import read_trained_columns
    from genpool.data.reader import READERS, open_reader

    READERS.require(reader)
    known = READERS.options(reader)
    options: dict[str, Any] = {name: value for name, value in columns.items() if value}
    if not labelled and "labelled" in known:
        options["labelled"] = False
    if "preferred" in known:
        options["preferred"] = read_trained_columns(model)
    if settings:
        from genpool.config import option_problems
        from genpool.training.recipe_file import apply_overrides

        tables: dict[str, Any] = {"reader": {}}
        problems = apply_overrides(tables, settings, {})
        own, others = tables.pop("reader"), tables
        problems += [
            f"{name!r} is not a section of this command; expected reader." for name in others
        ]
        problems += option_problems("reader", reader, READERS, own)
        if problems:
            raise ConfigError(problems)
        options |= own
    return open_reader(reader, path, **{"bad_rows": bad_rows, **options})


def report_skipped(reader: Reader) -> None:
    """Prints on standard error how many rows were left out, why, and what may help."""
    if reader.skipped:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in reader.skipped.items())
        typer.echo(f"rows left out: {counts}", err=True)
    if reader.first_skipped is not None:
        typer.echo(f"the first of them: {reader.first_skipped}", err=True)


def report_cut(text: TextPipeline) -> None:
    """Prints on standard error what the maximum length cut off, and what was annotated how."""
    if text.cut:
        typer.echo(f"maximum length {text.max_length}: {text.cut}", err=True)
    if text.annotator is not None:
        typer.echo(f"{text.annotator.name}: {text.annotator.report()}", err=True)

"""genpool predict"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genpool.cli.arguments import split_model_argument
from genpool.cli.table_options import (
    BadRows,
    BadRowsOption,
    FirstOption,
    LabelOption,
    ReaderName,
    ReaderOption,
    SecondOption,
    SettingsOption,
    SplitOption,
    TokenizedOption,
    open_data,
    report_skipped,
)
from genpool.errors import InputError

if TYPE_CHECKING:
    from genpool.data import Reader
    from genpool.evaluation import Predictions

PREDICTIONS, SUBMISSION = ".tsv", ".csv"


def predict(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="[MODEL] DATA. DATA is a table (.tsv .csv .jsonl .parquet, also compressed), or "
            "what --reader says.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="The .tsv to write, with probabilities; with --reader multinli also a .csv, the "
            "file that its competition accepts.",
        ),
    ],
    reader: ReaderOption = ReaderName.TABLE,
    split: SplitOption = None,
    first: FirstOption = None,
    second: SecondOption = None,
    label: LabelOption = None,
    tokenized: TokenizedOption = False,
    settings: SettingsOption = None,
    bad_rows: BadRowsOption = BadRows.ERROR,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows per batch.")] = 64,
) -> None:
    """Predict the label of every row of a table, or of a split of a data set.

    Without MODEL, the embedded NLI classifier is used.

    Example: genpool predict runs/rules/best pairs.tsv -o labels.tsv

    MultiNLI: genpool predict runs/multinli/best multinli_1.0 --reader multinli
    --split test_matched -o test_matched.csv
    """
    model, path = split_model_argument("DATA", paths)
    data = open_data(
        path,
        reader,
        False,
        bad_rows,
        settings,
        first=first,
        second=second,
        label=label,
        tokenized=tokenized,
    )
    _check_output(output, data, reader)
    split = data.choose_split(split)
    data.check(split)  # before the model is loaded, which takes longer
    from genpool.jobs.tables import load_classifier, predict_table

    classifier = load_classifier(model)
    table = predict_table(classifier, data, batch_size, split)
    _write(output, table.predictions, data)
    typer.echo(f"{len(table.predictions.ids):,} rows: {output}")
    report_skipped(data)
    if classifier.text.cut.sentences:
        typer.echo(f"maximum length {classifier.text.max_length}: {classifier.text.cut}", err=True)


def _check_output(output: Path, data: Reader, reader: ReaderName) -> None:
    suffixes = [PREDICTIONS, SUBMISSION] if data.write_submission else [PREDICTIONS]
    if output.suffix not in suffixes:
        expected = " or ".join(suffixes)
        raise InputError(
            f"{output} ends in {output.suffix!r}; with --reader {reader}, predictions are written "
            f"as {expected}."
        )


def _write(output: Path, predictions: Predictions, data: Reader) -> None:
    from genpool.evaluation import write_predictions

    if output.suffix == SUBMISSION and data.write_submission is not None:
        data.write_submission(output, zip(predictions.ids, predictions.predicted, strict=True))
    else:
        write_predictions(output, predictions)

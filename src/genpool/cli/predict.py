"""genpool predict"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genpool.cli.arguments import split_model_argument
from genpool.cli.table_options import BadRows, report_skipped
from genpool.errors import InputError


def predict(
    paths: Annotated[
        list[Path],
        typer.Argument(help="[MODEL] FILE: a table, .tsv .csv .jsonl .parquet, or compressed."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The .tsv to write.")],
    first: Annotated[str | None, typer.Option(help="Column of the (first) sentence.")] = None,
    second: Annotated[str | None, typer.Option(help="Column of the second sentence.")] = None,
    label: Annotated[
        str | None, typer.Option(help="Column of the gold label, if there is one.")
    ] = None,
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="Tokens joined by spaces.")
    ] = False,
    bad_rows: BadRows = "error",
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
) -> None:
    """Predict the label of every row of a table; without MODEL, with the NLI classifier inside.

    Example: genpool predict runs/rules/best pairs.tsv -o labels.tsv
    """
    model, file = split_model_argument("FILE", paths)
    if output.suffix != ".tsv":
        raise InputError(f"{output} ends in {output.suffix!r}; predictions are written as .tsv.")
    from genpool.data import TableReader
    from genpool.evaluation import write_predictions
    from genpool.jobs.tables import load_classifier, predict_table

    classifier = load_classifier(model)
    reader = TableReader(
        file,
        first=first,
        second=second,
        label=label,
        labelled=False,
        tokenized=tokenized,
        bad_rows=bad_rows,
    )
    found = predict_table(classifier, reader, batch_size)
    write_predictions(output, found.predictions)
    typer.echo(f"{len(found.predictions.ids):,} rows: {output}")
    report_skipped(reader)
    if classifier.text.cut.sentences:
        typer.echo(f"maximum length {classifier.text.max_length}: {classifier.text.cut}", err=True)

"""genpool probe"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from typer import Option

from genpool.cli import options
from genpool.errors import InputError


def probe(
    data: str = Option(
        ...,
        "--data",
        help="A table of texts and labels, a folder of tables, or what --reader says.",
    ),
    encoder: str | None = Option(
        None,
        metavar="embedded|FOLDER|transformer:FOLDER",
        help="The frozen encoder; FOLDER is of genpool or sentence-transformers. "
        "Default: embedded.",
    ),
    pooling: list[str] | None = Option(
        None,
        help="mean, max, scalar, generalized or another pooling; repeatable. all: these four. "
        "Default: all.",
    ),
    heads: int = Option(2, min=1, help="Heads of the poolings that have several."),
    layers: str = Option(
        "last", metavar="last|all|0,6,12", help="Layers of a transformer, mixed by learned weights."
    ),
    out: Path | None = Option(
        None, help="Folder for the report, the predictions, and a probe per pooling."
    ),
    use: Path | None = Option(
        None, help="Folder of a probe: predict the rows of DATA with it, instead."
    ),
    output: Path | None = Option(None, "-o", "--output", help="With --use: the .tsv to write."),
    cache: Path | None = Option(
        None, help="Folder of cached token states. Default: the user's cache, or GENPOOL_CACHE."
    ),
    reader: options.ReaderName = "table",
    first: options.First = None,
    label: options.Label = None,
    encoding: options.Encoding = None,
    settings: options.Settings = None,
    bad_rows: options.BadRows = "error",
    seed: int = Option(0, min=0, help="Draws the batches, and the test rows where there are none."),
    plugin: options.Plugin = None,
) -> None:
    """Compare poolings on the token states of a frozen encoder, and keep the classifiers.

    The states are computed once. For each pooling a linear classifier is trained on them, with the
    pooling where it has parameters. The report has accuracies with intervals, paired tests, and
    what the heads look at. Without a test table, a fifth of the rows is held out.

    Example: genpool probe --data films.tsv --pooling all --out probes

    Use one: genpool probe --data new.tsv --use probes/generalized -o labels.tsv
    """
    if (use is None) != (output is None):
        raise InputError("--use PROBE and -o FILE belong together: they predict the rows of DATA.")
    rows = options.open_data(
        data, reader, use is None, bad_rows, settings, first=first, label=label, encoding=encoding
    )
    from genpool.integrations.probing.comparison import predict_with_probe, probe_table

    try:
        if use is not None and output is not None:
            count = predict_with_probe(use, rows, output, encoder, cache)
            typer.echo(f"{count:,} rows: {output}")
        else:
            how: dict[str, Any] = {"layers": layers, "heads": heads, "cache": cache, "seed": seed}
            how["encoder"] = encoder or "embedded"
            typer.echo(probe_table(rows, pooling or ["all"], out, **how))
    finally:
        options.report_skipped(rows)
    if out is not None:
        typer.echo(f"probes, predictions and report: {out}")

"""genpool evaluate"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer import Argument, Option

from genpool.cli import options
from genpool.cli.terminal import plain_tables
from genpool.disk.atomic import atomic_file
from genpool.disk.folder_format import write_text
from genpool.errors import InputError

if TYPE_CHECKING:
    from genpool.data import Reader


def evaluate(
    paths: list[str] = Argument(
        help="[MODEL] DATA. DATA is a table, a folder of tables, or what --reader says. With "
        "--compare: A.tsv B.tsv."
    ),
    compare: bool = Option(
        False, "--compare", help="Compare two prediction files: is A better than B?"
    ),
    similarity: bool = Option(
        False, "--similarity", help="Correlate the cosine with a score column."
    ),
    probe: bool = Option(
        False, "--probe", help="Logistic regression on the frozen sentence vectors."
    ),
    reader: options.ReaderName = "table",
    split: options.Split = None,
    first: options.First = None,
    second: options.Second = None,
    label: options.Label = None,
    score: options.Score = None,
    encoding: options.Encoding = None,
    tokenized: options.Tokenized = False,
    settings: options.Settings = None,
    folds: int = Option(10, min=2, help="Folds of --probe, for data without a training split."),
    bad_rows: options.BadRows = "error",
    output: Path | None = Option(
        None,
        "-o",
        "--output",
        help="Also write the predictions, with texts and probabilities: .tsv, .csv, .jsonl or "
        ".parquet.",
    ),
    json_: Path | None = Option(
        None, "--json", help="Also write the report to this file, as JSON."
    ),
    plugin: options.Plugin = None,
) -> None:
    """Score a model on a data set, or compare two prediction files.

    Without MODEL, the embedded one is scored. Of several splits, test is scored, else dev; choose
    another one with --split. Rows without a gold label are counted, but not scored. Columns that
    are not named are those that the model was trained on, if DATA has them.

    A classifier gets accuracy, per class and per genre, with a confusion matrix. --similarity and
    --probe look at the sentence vectors; if there is a training split, they train on it.

    Example: genpool evaluate runs/rules/best pairs.tsv

    SNLI: genpool evaluate runs/snli/best snli_1.0 --reader snli
    """
    enough = len(paths) == 2 or (len(paths) == 1 and not compare)
    if not enough or sum((compare, similarity, probe)) > 1:
        raise InputError(
            "expected [MODEL] DATA, or --compare A.tsv B.tsv; and at most one of --compare, "
            "--similarity, --probe."
        )
    predicts = not (compare or similarity or probe)
    if output is not None:
        from genpool.jobs.tables import require_prediction_suffix

        if not predicts:
            raise InputError("-o is for the predictions of a classifier; write reports by --json.")
        require_prediction_suffix(output)
    if compare:
        from genpool.evaluation import compare_predictions, read_predictions

        a, b = map(Path, paths)
        comparison = compare_predictions(read_predictions(a), read_predictions(b))
        values, text = {"comparison": comparison.to_dict()}, comparison.to_markdown(*_names(a, b))
    else:
        from genpool.data.reader import SCORED_SPLITS

        model, place = options.split_model_argument("DATA", paths)
        columns = {"first": first, "second": second, "label": label, "score": score}
        table = {**columns, "encoding": encoding, "tokenized": tokenized}
        table["empty_texts"] = predicts and reader == "table"
        data = options.open_data(place, reader, True, bad_rows, settings, model, **table)
        try:
            split = data.choose_split(split, SCORED_SPLITS)
            data.check(split)  # before the model is loaded, which takes longer
            if predicts:
                reports = _accuracy(model, data, split, output)
            else:
                reports = _reports(model, data, split, folds if probe else None)
        finally:  # also when the rows that remain are too few: that may be why
            options.report_skipped(data)
        values = {name: report.to_dict() for name, report in reports.items()}
        text = "\n".join(report.to_markdown() for report in reports.values())
    typer.echo(plain_tables(text))
    if json_ is not None:
        with atomic_file(json_) as temporary:
            write_text(temporary, json.dumps(values, indent=2) + "\n")


def _names(a: Path, b: Path) -> tuple[str, str]:
    """Returns the shortest ends of two paths that differ; the files of all runs have one name."""
    if a.stem == b.stem and a.suffix != b.suffix:
        return a.name, b.name
    one, other = a.with_suffix("").parts, b.with_suffix("").parts
    for count in range(1, max(len(one), len(other)) + 1):
        if one[-count:] != other[-count:]:
            return str(Path(*one[-count:])), str(Path(*other[-count:]))
    return a.stem, b.stem  # the same file twice


def _accuracy(model: str | None, data: Reader, split: str, output: Path | None) -> dict[str, Any]:
    """Returns the report on a classifier; its predictions are written if a file is named."""
    from genpool.jobs.tables import load_classifier, predict_table

    table = predict_table(load_classifier(model), data, split=split)
    if output is not None:
        table.write(output)
    if table.scores is not None:
        return {"scores": table.score_report()}
    report = table.report()
    if table.unlabelled:
        typer.echo(f"rows without a gold label, not scored: {table.unlabelled:,}", err=True)
    if table.without_text:
        typer.echo(table.without_text_note, err=True)
    return {"accuracy": report}


def _reports(model: str | None, data: Reader, split: str, folds: int | None) -> dict[str, Any]:
    """Returns the reports on sentence vectors: similarity, or with a number of folds a probe."""
    from genpool import SentenceEncoder
    from genpool.jobs.tables import evaluate_probe, evaluate_similarity

    encoder = SentenceEncoder.from_pretrained(model)
    if folds is not None:
        return {"probe": evaluate_probe(encoder, data, folds, split)}
    cosine, regression = evaluate_similarity(encoder, data, split)
    return {"similarity": cosine} | ({} if regression is None else {"regression": regression})

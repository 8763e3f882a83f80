"""genpool evaluate"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genpool.cli.table_options import BadRows, report_skipped
from genpool.disk.files import atomic_file
from genpool.errors import InputError

if TYPE_CHECKING:
    from genpool.data import TableReader

#: the numbers of a report, under its name, and the report as text
Report = tuple[dict[str, Any], str]


def evaluate(
    paths: Annotated[list[Path], typer.Argument(help="[MODEL] FILE, or --compare A.tsv B.tsv")],
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare two prediction files: is A better than B?")
    ] = False,
    similarity: Annotated[
        bool, typer.Option("--similarity", help="Correlate the cosine with a score column.")
    ] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Logistic regression on the frozen sentence vectors.")
    ] = False,
    first: Annotated[str | None, typer.Option(help="Column of the (first) sentence.")] = None,
    second: Annotated[str | None, typer.Option(help="Column of the second sentence.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label.")] = None,
    score: Annotated[str | None, typer.Option(help="Column of the similarity score.")] = None,
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="Tokens joined by spaces.")
    ] = False,
    folds: Annotated[
        int, typer.Option(min=2, help="Of --probe, for a table without train and test.")
    ] = 10,
    bad_rows: BadRows = "error",
    json_: Annotated[
        Path | None, typer.Option("--json", help="Also write the numbers here.")
    ] = None,
) -> None:
    """Score a model on a table, or compare two prediction files; without MODEL, the one inside.

    A classifier gets accuracy, per class and per genre, with a confusion matrix. --similarity and
    --probe look at the sentence vectors; given a folder they use its train, dev and test tables.

    Example: genpool evaluate runs/rules/best pairs.tsv
    """
    from genpool.data import TableReader

    enough = len(paths) == 2 or (len(paths) == 1 and not compare)
    if not enough or sum((compare, similarity, probe)) > 1:
        raise InputError(
            "expected [MODEL] FILE, or --compare A.tsv B.tsv; and at most one of --compare, "
            "--similarity, --probe."
        )
    if compare:
        reports = [_comparison(*paths)]
    else:
        reader = TableReader(
            paths[-1],
            first=first,
            second=second,
            label=label,
            score=score,
            tokenized=tokenized,
            bad_rows=bad_rows,
        )
        model = paths[0] if len(paths) == 2 else None
        try:
            reports = _reports(model, reader, similarity, folds if probe else None)
        finally:  # also when the rows that remain are too few: that may be why
            report_skipped(reader)
    typer.echo("\n".join(text for _, text in reports))
    if json_ is not None:
        merged: dict[str, Any] = {}
        for numbers, _ in reports:
            merged |= numbers
        with atomic_file(json_) as temporary:
            temporary.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")


def _comparison(a: Path, b: Path) -> Report:
    from genpool.evaluation import compare_predictions, read_predictions

    comparison = compare_predictions(read_predictions(a), read_predictions(b))
    return {"comparison": comparison.to_dict()}, comparison.to_markdown(*_names(a, b))


def _names(a: Path, b: Path) -> tuple[str, str]:
    """As much of the end of two paths as tells them apart; all runs call their files the same."""
    if a.stem == b.stem and a.suffix != b.suffix:
        return a.name, b.name
    one, other = a.with_suffix("").parts, b.with_suffix("").parts
    for count in range(1, max(len(one), len(other)) + 1):
        if one[-count:] != other[-count:]:
            return str(Path(*one[-count:])), str(Path(*other[-count:]))
    return a.stem, b.stem  # the same file twice


def _reports(
    model: Path | None, reader: TableReader, similarity: bool, folds: int | None
) -> list[Report]:
    """What was asked for of a table; with a number of folds, a probe."""
    from genpool import SentenceEncoder
    from genpool.jobs import tables

    if similarity:
        encoder = SentenceEncoder.from_pretrained(model)
        cosine, regression = tables.evaluate_similarity(encoder, reader)
        both = [({"similarity": cosine.to_dict()}, cosine.to_markdown())]
        if regression is not None:
            both.append(({"regression": regression.to_dict()}, regression.to_markdown()))
        return both
    if folds is not None:
        found = tables.evaluate_probe(SentenceEncoder.from_pretrained(model), reader, folds)
        return [({"probe": found.to_dict()}, found.to_markdown())]
    report = tables.predict_table(tables.load_classifier(model), reader).report()
    return [({"accuracy": report.to_dict()}, report.to_markdown())]

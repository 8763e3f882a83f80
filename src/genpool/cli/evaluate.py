"""genpool evaluate"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from genpool.errors import InputError
from genpool.files import replacing


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
    json_: Annotated[
        Path | None, typer.Option("--json", help="Also write the numbers here.")
    ] = None,
) -> None:
    """Score a model on a table, or compare two prediction files; without MODEL, the one inside.

    A classifier gets accuracy, per class and per genre, with a confusion matrix. --similarity and
    --probe look at the sentence vectors; given a folder they use its train, dev and test tables.

    Example: genpool evaluate runs/rules/best pairs.tsv
    """
    enough = len(paths) == 2 or (len(paths) == 1 and not compare)
    if not enough or sum((compare, similarity, probe)) > 1:
        raise InputError(
            "expected [MODEL] FILE, or --compare A.tsv B.tsv; and at most one of --compare, "
            "--similarity, --probe."
        )
    columns = {"first": first, "second": second, "label": label, "score": score}
    reports = list(_reports(paths, compare, similarity, probe, {**columns, "tokenized": tokenized}))
    typer.echo("\n".join(text for _, text in reports))
    if json_ is not None:
        merged: dict[str, Any] = {}
        for numbers, _ in reports:
            merged |= numbers
        with replacing(json_) as temporary:
            temporary.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")


def _reports(
    paths: list[Path], compare: bool, similarity: bool, probe: bool, options: dict[str, Any]
) -> list[tuple[dict[str, Any], str]]:
    """The numbers of each report, under its name, and the report as text."""
    from genpool import SentenceEncoder, tables
    from genpool.evaluation import compare_predictions, read_predictions

    if compare:
        comparison = compare_predictions(*map(read_predictions, paths))
        text = comparison.to_markdown(paths[0].stem, paths[1].stem)
        return [({"comparison": comparison.to_dict()}, text)]
    model, file = paths if len(paths) == 2 else (None, paths[0])
    if similarity:
        encoder = SentenceEncoder.from_pretrained(model)
        cosine, regression = tables.evaluate_similarity(encoder, file, **options)
        both = [({"similarity": cosine.to_dict()}, cosine.to_markdown())]
        if regression is not None:
            both.append(({"regression": regression.to_dict()}, regression.to_markdown()))
        return both
    if probe:
        found = tables.evaluate_probe(SentenceEncoder.from_pretrained(model), file, **options)
        return [({"probe": found.to_dict()}, found.to_markdown())]
    report = tables.predict_table(tables.load_classifier(model), file, **options).report()
    return [({"accuracy": report.to_dict()}, report.to_markdown())]

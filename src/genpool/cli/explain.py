"""genpool explain"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genpool.cli.sentences import require_sentence


def explain(
    sentence: Annotated[str, typer.Argument(help="The sentence, in quotes.")],
    model: Annotated[
        Path | None, typer.Option(help="Folder of a model. Default: the embedded encoder.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Also write an HTML page with shaded words.")
    ] = None,
    heatmap: Annotated[
        Path | None,
        typer.Option(help="Also draw words by dimensions, all heads: .png, .svg or .pdf."),
    ] = None,
) -> None:
    """Show how much weight each head of the pooling gives to each word.

    Example: genpool explain "A man sleeps." --model runs/rules/best
    """
    require_sentence(sentence)
    from genpool import SentenceEncoder
    from genpool.disk.atomic_file import atomic_file

    explanation = SentenceEncoder.from_pretrained(model).explain(sentence)
    typer.echo(str(explanation))
    if html is not None:
        with atomic_file(html) as temporary:
            temporary.write_text(explanation.to_html(), encoding="utf-8")
        typer.echo(f"page: {html}")
    if heatmap is not None:
        from genpool.evaluation.heatmaps import HeatmapPanel, heatmap_picture

        words = [token.text for token in explanation.tokens]
        heatmap_picture([HeatmapPanel("", words, explanation.weights)], heatmap)
        typer.echo(f"picture: {heatmap}")

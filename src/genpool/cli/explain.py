"""genpool explain"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genpool.cli.sentences import require_sentence
from genpool.errors import InputError

if TYPE_CHECKING:
    from genpool.inference.explanation import Explanation, PairExplanation


def explain(
    sentence: Annotated[str, typer.Argument(help="The sentence, in quotes.")],
    second: Annotated[
        str | None, typer.Argument(help="Another sentence, to compare the first with.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Folder of a model. Default: the embedded encoder.")
    ] = None,
    nli: Annotated[
        bool, typer.Option("--nli", help="Use the embedded NLI classifier, for two sentences.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Also write an HTML page with shaded words.")
    ] = None,
    heatmap: Annotated[
        Path | None,
        typer.Option(help="Also draw words by dimensions, all heads: .png, .svg or .pdf."),
    ] = None,
) -> None:
    """Show how much each word matters: to the vector, to each head, to a similarity or a label.

    A word's influence is how far a vector turns when the word is left out of the pooling. With two
    sentences: how much of their cosine is lost, and how much of the probability of the label if the
    model is a classifier of pairs.

    Example: genpool explain "A man sleeps." --model runs/rules/best
    """
    sentences = [sentence] if second is None else [sentence, second]
    for text in sentences:
        require_sentence(text)
    from genpool.disk.atomic import atomic_file

    explanation = _explained(sentences, model, nli)
    typer.echo(str(explanation))
    if html is not None:
        with atomic_file(html) as temporary:
            temporary.write_text(explanation.to_html(), encoding="utf-8", newline="\n")
        typer.echo(f"page: {html}")
    if heatmap is not None:
        from genpool.evaluation.pictures import HeatmapPanel, heatmap_picture

        panels = [
            HeatmapPanel(title, [token.text for token in side.tokens], side.weights)
            for side in explanation.sentences
            for title in [side.sentence if len(sentences) > 1 else ""]
        ]
        heatmap_picture(panels, heatmap)
        typer.echo(f"picture: {heatmap}")


def _explained(
    sentences: list[str], folder: Path | None, nli: bool
) -> Explanation | PairExplanation:
    from genpool.integrations.load_encoder import load_explainable
    from genpool.jobs.explain import explain_sentences
    from genpool.model import PairClassifier, SentenceEncoder

    if nli and (folder is not None or len(sentences) != 2):
        raise InputError(
            "--nli is the embedded NLI classifier: expected two sentences, and no --model."
        )
    if nli:
        return explain_sentences(PairClassifier.from_pretrained(), sentences)
    model = SentenceEncoder.from_pretrained() if folder is None else load_explainable(folder)
    return explain_sentences(model, sentences)

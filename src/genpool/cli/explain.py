"""genpool similarity and genpool explain: one or two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer import Argument, Option

from genpool.cli import options
from genpool.disk.atomic import atomic_file
from genpool.disk.files import is_file
from genpool.disk.folder_format import write_text
from genpool.errors import DataError, InputError

if TYPE_CHECKING:
    from genpool.inference.explanation import Explanation, PairExplanation

#: lines of each file that are encoded at a time
CHUNK_LINES = 1024


def similarity(
    first: str = Argument(metavar="A", help="A sentence, or a file with one per line."),
    second: str = Argument(metavar="B", help="The same as A; two files are compared line by line."),
    model: options.Model = None,
    plugin: options.Plugin = None,
) -> None:
    """Print the cosine of two sentences, or of the lines of two files.

    Example: genpool similarity "A man sleeps." "A person rests." --model runs/rules/best
    """
    for side in (first, second):
        options.require_sentence_or_file(side)
    files = [side for side in (first, second) if is_file(side)]
    if len(files) == 1:
        raise DataError(f"{files[0]} is a file and the other is not; expected two of one kind")
    from genpool.data.sentences import read_sentences
    from genpool.integrations.load_encoder import load_encoder

    encoder = load_encoder(model)
    if not files:
        typer.echo(f"{float(encoder.similarity(first, second)):.4f}")
        return
    sides = read_sentences(first), read_sentences(second)
    while True:
        left, right = (list(islice(side, CHUNK_LINES)) for side in sides)
        if len(left) != len(right):
            raise DataError(f"the two files have different numbers of lines: {first}, {second}")
        if not left:
            return
        for cosine in encoder.similarity(left, right).diagonal():
            typer.echo(f"{float(cosine):.4f}")


def explain(
    sentence: str = Argument(help="The sentence, in quotes."),
    second: str | None = Argument(None, help="Another sentence, to compare the first with."),
    model: options.Model = None,
    nli: bool = Option(False, "--nli", help="Use the embedded NLI classifier, for two sentences."),
    html: Path | None = Option(None, help="Also write an HTML page with shaded words."),
    heatmap: Path | None = Option(
        None, help="Also draw words by dimensions, all heads: .png, .svg or .pdf."
    ),
    plugin: options.Plugin = None,
) -> None:
    """Show how much each word matters: to the vector, to each head, to a similarity or a label.

    A word's influence is how far a vector turns when the word is left out of the pooling. With two
    sentences: how much of their cosine is lost, and how much of the probability of the label if the
    model is a classifier of pairs.

    Example: genpool explain "A man sleeps." --model runs/rules/best
    """
    sentences = [sentence] if second is None else [sentence, second]
    for text in sentences:
        options.require_sentence(text)
    if nli and (model is not None or second is None):
        raise InputError(
            "--nli is the embedded NLI classifier: expected two sentences, and no --model."
        )
    from genpool.integrations.load_encoder import load_explainable
    from genpool.model import PairClassifier, SentenceEncoder

    embedded = PairClassifier if nli else SentenceEncoder
    loaded = embedded.from_pretrained() if model is None else load_explainable(model)
    explanation = explain_sentences(loaded, sentences)
    typer.echo(str(explanation))
    if html is not None:
        with atomic_file(html) as temporary:
            write_text(temporary, explanation.to_html())
        typer.echo(f"page: {html}")
    if heatmap is not None:
        from genpool.evaluation.pictures import HeatmapPanel, heatmap_picture

        titles = ["", ""] if second is None else sentences
        panels = [
            HeatmapPanel(title, [token.text for token in side.tokens], side.weights)
            for title, side in zip(titles, explanation.sentences, strict=False)
        ]
        heatmap_picture(panels, heatmap)
        typer.echo(f"picture: {heatmap}")


def explain_sentences(model: Any, sentences: Sequence[str]) -> Explanation | PairExplanation:
    """Returns what decides the label, if the model predicts one for as many sentences.

    Otherwise what decides the vector of the only sentence, or the similarity of the two.
    """
    from genpool.model import PairClassifier, TextClassifier

    is_classifier = isinstance(model, TextClassifier | PairClassifier)
    explanation: Explanation | PairExplanation
    if is_classifier and model.sentences_per_example == len(sentences):
        explanation = model.explain(*sentences)
    else:
        encoder = model.encoder if is_classifier else model
        explain = encoder.explain if len(sentences) == 1 else encoder.explain_pair
        explanation = explain(*sentences)
    return explanation

"""Explanations as HTML: a page of their own, or a part of a notebook. Every word is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from genpool.inference.explanation_text import NO_TOKENS, PAIR_LEGEND, signed, tree_line

if TYPE_CHECKING:
    from genpool.inference.explanation import Explanation, LabelExplanation, PairExplanation
    from genpool.text import Token

Values = NDArray[np.floating]

#: red, green, blue; the two can be told apart by the colour-blind
POSITIVE, NEGATIVE = "24,90,189", "214,96,10"

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>body {{ margin: 2.5rem; background: #fff }}</style>
<h1 style="font: 600 1.3rem/1.5 system-ui, sans-serif; color: #1c2430">{title}</h1>
{content}
</html>
"""
STYLE = """<style>
.genpool { font: 16px/1.6 system-ui, sans-serif; color: #1c2430; background: #fff }
.genpool table { border-collapse: collapse; margin: 1rem 0 }
.genpool th { text-align: left; font-weight: 500; color: #5b6470; white-space: nowrap }
.genpool th, .genpool td { padding: .35rem 1.2rem .35rem 0; vertical-align: top; text-align: left }
.genpool p { color: #5b6470; max-width: 60rem }
.genpool span { padding: .1rem .3rem; border-radius: .25rem; display: inline-block }
.genpool .overlap td { padding: .35rem .6rem; text-align: right }
</style>"""
WORD = (
    '<span style="background:rgba({colour},{alpha:.2f});color:{ink}" title="{note}">{word}</span> '
)
SENTENCE_LEGEND = (
    "By influence: the darker a word, the further the vector turns when the word is left out. By "
    "weight: the darker a word, the larger its mean weight in the head. Point at a word for both."
)


def page(title: str, content: str) -> str:
    """Returns a complete HTML document."""
    return PAGE.format(title=html.escape(title), content=content)


def sentence(explanation: Explanation) -> str:
    """Returns the sentence once per head, shaded by influence and by weight, and the overlap."""
    parts = [f"<p>{html.escape(explanation.sentence)}</p>"]
    if explanation.tree is not None:
        parts.append(f"<p>{html.escape(tree_line(explanation.tree))}</p>")
    if explanation.prediction is not None:
        parts.append(label(explanation.prediction))
    turned = explanation.vector_influence
    notes = [f"turns the vector by {degrees:.1f}°" for degrees in turned]
    lines = [row("vector", words(explanation.tokens, turned, notes), "")]
    if explanation.prediction is not None:
        [changes] = explanation.prediction.influence
        notes = [signed(change) for change in changes]
        title = html.escape(explanation.prediction.label)
        lines.append(row(title, words(explanation.tokens, changes, notes), ""))
    pairs = zip(explanation.head_influence, explanation.token_weights, strict=True)
    for number, (influence, weights) in enumerate(pairs, start=1):
        cells = zip(influence, weights, strict=True)
        notes = [
            f"turns the head by {degrees:.1f}°, weight {weight:.3f}" for degrees, weight in cells
        ]
        by_influence = words(explanation.tokens, influence, notes)
        by_weight = words(explanation.tokens, weights, notes)
        lines.append(row(f"head {number}", by_influence, by_weight))
    titles = row("", "by influence", "by weight", cell="th")
    parts.append(f"<table>{titles}{''.join(lines)}</table><p>{SENTENCE_LEGEND}</p>")
    if len(explanation.head_overlap) > 1:
        parts.append(overlap(explanation.head_overlap))
    return wrapped(parts)


def pair(explanation: PairExplanation) -> str:
    """Returns the similarity, the label, and the words of both sentences that decide them."""
    heads = "".join(
        f"<td>head {number}: {cosine:.3f}</td>"
        for number, cosine in enumerate(explanation.head_similarity, start=1)
    )
    parts = [f"<table><tr><th>similarity {explanation.similarity:.3f}</th>{heads}</tr></table>"]
    influences: list[tuple[str, Sequence[Values]]] = [
        ("similarity", explanation.similarity_influence)
    ]
    if explanation.prediction is not None:
        parts.append(label(explanation.prediction))
        influences.append((explanation.prediction.label, explanation.prediction.influence))
    for title, (first, second) in influences:
        largest = max(float(np.abs(side).max(initial=0.0)) for side in (first, second))
        sides = [
            words(side.tokens, values, [signed(value) for value in values], largest)
            for side, values in zip(explanation.sentences, (first, second), strict=True)
        ]
        parts.append(f"<table>{row(html.escape(title), *sides)}</table>")
    trees = [tree_line(side.tree) for side in explanation.sentences if side.tree]
    parts += [f"<p>{html.escape(tree)}</p>" for tree in trees]
    return wrapped([*parts, f"<p>{html.escape(PAIR_LEGEND)}</p>"])


def label(prediction: LabelExplanation) -> str:
    """Returns the probabilities of all labels; that of the predicted one is marked."""
    shares = zip(prediction.labels, prediction.probabilities, strict=True)
    cells = "".join(f"<td>{html.escape(name)}: {share:.3f}</td>" for name, share in shares)
    return f"<table><tr><th>label {html.escape(prediction.label)}</th>{cells}</tr></table>"


def words(
    tokens: Sequence[Token], values: Values, notes: Sequence[str], largest: float | None = None
) -> str:
    """Returns shaded words; the value with the largest size is darkest, negative ones are orange.

    Args:
        tokens: the words.
        values: one value for each of them.
        notes: what is shown when one points at them.
        largest: the value that is darkest. Default: None, the largest of these.
    """
    sizes = np.abs(values)
    scale = (float(sizes.max(initial=0.0)) if largest is None else largest) or 1.0
    spans = [
        WORD.format(
            colour=POSITIVE if value >= 0 else NEGATIVE,
            alpha=0.85 * float(abs(value)) / scale,
            ink="#fff" if abs(value) > 0.8 * scale else "#1c2430",
            note=html.escape(note),
            word=html.escape(token.text),
        )
        for token, value, note in zip(tokens, values, notes, strict=True)
    ]
    return "".join(spans) or NO_TOKENS


def overlap(matrix: Values) -> str:
    """Returns the overlap of the heads as a shaded matrix."""
    numbers = range(1, len(matrix) + 1)
    titles = "".join(f"<th>head {number}</th>" for number in numbers)
    lines = []
    for number, shares in zip(numbers, matrix, strict=True):
        cells = "".join(
            f'<td style="background:rgba({POSITIVE},{0.5 * share:.2f})">{share:.2f}</td>'
            for share in shares
        )
        lines.append(f"<tr><th>head {number}</th>{cells}</tr>")
    legend = "<p>Overlap of the heads: share of their weight that is on the same words.</p>"
    return f'<table class="overlap"><tr><th></th>{titles}</tr>{"".join(lines)}</table>{legend}'


def row(title: str, *cells: str, cell: str = "td") -> str:
    """Returns a row of a table; the cells are HTML."""
    return f"<tr><th>{title}</th>{''.join(f'<{cell}>{text}</{cell}>' for text in cells)}</tr>"


def wrapped(parts: Sequence[str]) -> str:
    """Returns the parts inside the element that the style is for."""
    return f'{STYLE}<div class="genpool">{"".join(parts)}</div>'

"""Explanations as tables for the terminal, and as HTML, in which every word is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from genpool.inference.explanation import Explanation, LabelExplanation, PairExplanation
    from genpool.text import Token

SHADES = " ░▒▓█"
NO_TOKENS = "(no tokens)"
SENTENCE_LEGEND = (
    "Degrees that a vector turns when the word is left out; in a head, its mean weight beside them."
)
PAIR_LEGEND = (
    "Cosine, or probability of the label, minus the same without the word: words with + speak "
    "for it."
)

Values = NDArray[np.floating]


def sentence_table(explanation: Explanation) -> str:
    """Returns the influence and the weights of a sentence: a line per token."""
    if not explanation.tokens:
        return NO_TOKENS
    words = [token.text for token in explanation.tokens]
    columns = [("vector", turns(explanation.vector_influence))]
    prediction = explanation.prediction
    if prediction is not None:
        columns.append((prediction.label, changes(prediction.influence, 0)))
    pairs = zip(explanation.head_influence, explanation.token_weights, strict=True)
    for number, (influence, weights) in enumerate(pairs, start=1):
        cells = zip(turns(influence), weights, strict=True)
        columns.append((f"head {number}", [f"{turn} {weight:.3f}" for turn, weight in cells]))
    lines = table(words, columns)
    if prediction is not None:
        lines = [label_line(prediction), "", *lines]
    lines += ["", SENTENCE_LEGEND]
    if explanation.tree is not None:
        lines += ["", tree_line(explanation.tree)]
    if len(explanation.head_overlap) > 1:
        lines += ["", *overlap_table(explanation.head_overlap)]
    return "\n".join(lines)


def pair_table(explanation: PairExplanation) -> str:
    """Returns the similarity, the label, and the influence of the words of both sentences."""
    heads = ", ".join(
        f"head {number} {cosine:.3f}"
        for number, cosine in enumerate(explanation.head_similarity, start=1)
    )
    lines = [f"similarity {explanation.similarity:.3f} ({heads})"]
    prediction = explanation.prediction
    if prediction is not None:
        lines.append(label_line(prediction))
    for place, sentence in enumerate(explanation.sentences):
        columns = [("similarity", changes(explanation.similarity_influence, place))]
        if prediction is not None:
            columns.append((prediction.label, changes(prediction.influence, place)))
        words = [token.text for token in sentence.tokens]
        lines += ["", *(table(words, columns) if words else [NO_TOKENS])]
        if sentence.tree:
            lines += ["", tree_line(sentence.tree)]
    return "\n".join([*lines, "", PAIR_LEGEND])


def tree_line(tree: str) -> str:
    """Returns the tree of a sentence, with brackets."""
    return f"tree {tree}"


def label_line(prediction: LabelExplanation) -> str:
    """Returns the label, and the probabilities of all labels."""
    shares = zip(prediction.labels, prediction.probabilities, strict=True)
    return f"label {prediction.label} ({', '.join(f'{name} {p:.3f}' for name, p in shares)})"


def table(words: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Returns lines: titles, then one word and its cells per line."""
    first = max(len(word) for word in words)
    widths = [max(len(title), *map(len, cells)) + 3 for title, cells in columns]
    titles = [f"{title:>{width}}" for (title, _), width in zip(columns, widths, strict=True)]
    lines = [" " * first + "".join(titles)]
    for row, word in enumerate(words):
        cells = [
            f"{cells[row]:>{width}}" for (_, cells), width in zip(columns, widths, strict=True)
        ]
        lines.append(f"{word:{first}}{''.join(cells)}".rstrip())
    return lines


def overlap_table(overlap: Values) -> list[str]:
    """Returns the overlap matrix of the heads, a line per head."""
    names = [f"head {number}" for number in range(1, len(overlap) + 1)]
    rows = [[f"{share:.2f}" for share in row] for row in overlap]
    columns = list(zip(names, zip(*rows, strict=True), strict=True))
    title = "Overlap of the heads: share of their weight that is on the same words."
    return [title, *table(names, columns)]


def turns(degrees: Values) -> list[str]:
    """Returns cells: degrees with a shade; the largest of a column is darkest."""
    largest = float(degrees.max(initial=0.0))
    return [f"{value:5.1f} {shade(float(value), largest)}" for value in degrees]


def changes(influence: Sequence[Values], place: int) -> list[str]:
    """Returns signed cells of one sentence, shaded by size; the largest of all is darkest."""
    largest = max((float(np.abs(values).max(initial=0.0)) for values in influence), default=0.0)
    return [f"{signed(value)} {shade(abs(float(value)), largest)}" for value in influence[place]]


def signed(value: float) -> str:
    """Returns a value with its sign; one that rounds to zero has a plus."""
    return f"{round(float(value), 3) + 0.0:+.3f}"


def shade(value: float, largest: float) -> str:
    """Returns a block character that is darker for a larger value."""
    return SHADES[round(value / largest * (len(SHADES) - 1))] if largest > 0 else SHADES[0]


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
HTML_LEGEND = (
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
    parts.append(f"<table>{titles}{''.join(lines)}</table><p>{HTML_LEGEND}</p>")
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

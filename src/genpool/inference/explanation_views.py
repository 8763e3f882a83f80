"""Explanations as tables for the terminal, and as HTML, in which every word is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

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
OVERLAP_LEGEND = "Overlap of the heads: share of their weight that is on the same words."
HTML_LEGEND = (
    "By influence: the darker a word, the further the vector turns when the word is left out. By "
    "weight: the darker a word, the larger its mean weight in the head. Point at a word for both."
)

Values = NDArray[np.floating]


class Shown(NamedTuple):
    """One value for each word of a sentence: in the cells of a table, and as notes on a page."""

    title: str
    values: Values
    cells: list[str]
    notes: list[str]
    largest: float  # what is darkest
    weights: Values | None = None


def sentence_values(explanation: Explanation) -> list[Shown]:
    """Returns what is shown of a sentence: its vector, its label, each of its heads."""
    shown = [turns("vector", explanation.vector_influence)]
    if explanation.prediction is not None:
        shown += changes(explanation.prediction.label, explanation.prediction.influence)
    pairs = zip(explanation.head_influence, explanation.token_weights, strict=True)
    for number, (influence, weights) in enumerate(pairs, start=1):
        head = turns("head", influence)
        cells = [f"{cell} {weight:.3f}" for cell, weight in zip(head.cells, weights, strict=True)]
        notes = [f"{note}, weight {w:.3f}" for note, w in zip(head.notes, weights, strict=True)]
        title = f"head {number}"
        shown.append(head._replace(title=title, cells=cells, notes=notes, weights=weights))
    return shown


def pair_values(explanation: PairExplanation) -> list[tuple[Shown, ...]]:
    """Returns what is shown of the words of both sentences: similarity, then the label."""
    shown = [changes("similarity", explanation.similarity_influence)]
    if explanation.prediction is not None:
        shown.append(changes(explanation.prediction.label, explanation.prediction.influence))
    return shown


def turns(title: str, degrees: Values) -> Shown:
    """Returns the degrees that a vector turns."""
    largest = float(degrees.max(initial=0.0))
    cells = [f"{value:5.1f} {shade(float(value), largest)}" for value in degrees]
    notes = [f"turns the {title} by {value:.1f}°" for value in degrees]
    return Shown(title, degrees, cells, notes, largest)


def changes(title: str, influence: Sequence[Values]) -> tuple[Shown, ...]:
    """Returns signed values of each sentence; the largest of all sentences is darkest."""
    largest = max((float(np.abs(values).max(initial=0.0)) for values in influence), default=0.0)
    sides = []
    for values in influence:
        # What rounds to zero has a plus.
        notes = [f"{round(float(value), 3) + 0.0:+.3f}" for value in values]
        shades = [shade(abs(float(value)), largest) for value in values]
        cells = [f"{note} {dark}" for note, dark in zip(notes, shades, strict=True)]
        sides.append(Shown(title, values, cells, notes, largest))
    return tuple(sides)


def shade(value: float, largest: float) -> str:
    """Returns a block character that is darker for a larger value."""
    return SHADES[round(value / largest * (len(SHADES) - 1))] if largest > 0 else SHADES[0]


def label_line(prediction: LabelExplanation) -> str:
    """Returns the label, and the probabilities of all labels."""
    shares = zip(prediction.labels, prediction.probabilities, strict=True)
    return f"label {prediction.label} ({', '.join(f'{name} {p:.3f}' for name, p in shares)})"


def pair_lines(explanation: PairExplanation) -> list[str]:
    """Returns the similarity of a pair and of its heads, and the label."""
    heads = ", ".join(
        f"head {number} {cosine:.3f}"
        for number, cosine in enumerate(explanation.head_similarity, start=1)
    )
    lines = [f"similarity {explanation.similarity:.3f} ({heads})"]
    if explanation.prediction is not None:
        lines.append(label_line(explanation.prediction))
    return lines


# --- tables


def sentence_table(explanation: Explanation) -> str:
    """Returns the influence and the weights of a sentence: a line per token."""
    if not explanation.tokens:
        return NO_TOKENS
    lines = [] if explanation.prediction is None else [label_line(explanation.prediction), ""]
    lines += [*token_table(explanation.tokens, sentence_values(explanation)), "", SENTENCE_LEGEND]
    if explanation.tree is not None:
        lines += ["", f"tree {explanation.tree}"]
    overlap = explanation.head_overlap
    if len(overlap) > 1:
        names = [f"head {number}" for number in range(1, len(overlap) + 1)]
        cells = [[f"{share:.2f}" for share in column] for column in overlap.T]
        lines += ["", OVERLAP_LEGEND, *table(names, list(zip(names, cells, strict=True)))]
    return "\n".join(lines)


def pair_table(explanation: PairExplanation) -> str:
    """Returns the similarity, the label, and the influence of the words of both sentences."""
    lines = pair_lines(explanation)
    for sentence, *shown in zip(explanation.sentences, *pair_values(explanation), strict=True):
        lines += ["", *token_table(sentence.tokens, shown)]
        if sentence.tree:
            lines += ["", f"tree {sentence.tree}"]
    return "\n".join([*lines, "", PAIR_LEGEND])


def token_table(tokens: Sequence[Token], shown: Sequence[Shown]) -> list[str]:
    """Returns the lines of a table with a word and its cells per line."""
    columns = [(column.title, column.cells) for column in shown]
    return table([token.text for token in tokens], columns) if tokens else [NO_TOKENS]


def table(words: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Returns lines: titles, then one word and its cells per line."""
    first = max(len(word) for word in words)
    widths = [max(len(title), *map(len, cells)) + 3 for title, cells in columns]
    lines = []
    for word, *cells in zip(
        ["", *words], *([title, *cells] for title, cells in columns), strict=True
    ):
        padded = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
        lines.append(f"{word:{first}}{''.join(padded)}".rstrip())
    return lines


# --- HTML

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


def page(title: str, content: str) -> str:
    """Returns a complete HTML document."""
    return PAGE.format(title=html.escape(title), content=content)


def sentence(explanation: Explanation) -> str:
    """Returns the sentence once per head, shaded by influence and by weight, and the overlap."""
    lines = [explanation.sentence]
    if explanation.tree is not None:
        lines.append(f"tree {explanation.tree}")
    if explanation.prediction is not None:
        lines.append(label_line(explanation.prediction))
    rows = [row("", "by influence", "by weight", cell="th")]
    for shown in sentence_values(explanation):
        by_weight = ""
        if shown.weights is not None:
            largest = float(shown.weights.max(initial=0.0))
            by_weight = words(
                explanation.tokens, shown._replace(values=shown.weights, largest=largest)
            )
        rows.append(row(html.escape(shown.title), words(explanation.tokens, shown), by_weight))
    content = f"{paragraphs(lines)}<table>{''.join(rows)}</table>{paragraphs([HTML_LEGEND])}"
    if len(explanation.head_overlap) > 1:
        content += overlap_matrix(explanation.head_overlap)
    return wrapped(content)


def pair(explanation: PairExplanation) -> str:
    """Returns the similarity, the label, and the words of both sentences that decide them."""
    content = paragraphs(pair_lines(explanation))
    for shown in pair_values(explanation):
        sides = zip(explanation.sentences, shown, strict=True)
        cells = [words(side.tokens, values) for side, values in sides]
        content += f"<table>{row(html.escape(shown[0].title), *cells)}</table>"
    trees = [f"tree {side.tree}" for side in explanation.sentences if side.tree]
    return wrapped(content + paragraphs([*trees, PAIR_LEGEND]))


def words(tokens: Sequence[Token], shown: Shown) -> str:
    """Returns shaded words: the largest value is darkest, negative ones are orange."""
    scale = shown.largest or 1.0
    spans = [
        WORD.format(
            colour=POSITIVE if value >= 0 else NEGATIVE,
            alpha=0.85 * float(abs(value)) / scale,
            ink="#fff" if abs(value) > 0.8 * scale else "#1c2430",
            note=html.escape(note),
            word=html.escape(token.text),
        )
        for token, value, note in zip(tokens, shown.values, shown.notes, strict=True)
    ]
    return "".join(spans) or NO_TOKENS


def overlap_matrix(overlap: Values) -> str:
    """Returns the overlap of the heads as a shaded matrix."""
    names = [f"head {number}" for number in range(1, len(overlap) + 1)]
    rows = [row("", *names, cell="th")]
    for name, shares in zip(names, overlap, strict=True):
        cells = "".join(
            f'<td style="background:rgba({POSITIVE},{0.5 * share:.2f})">{share:.2f}</td>'
            for share in shares
        )
        rows.append(f"<tr><th>{name}</th>{cells}</tr>")
    return f'<table class="overlap">{"".join(rows)}</table>{paragraphs([OVERLAP_LEGEND])}'


def row(title: str, *cells: str, cell: str = "td") -> str:
    """Returns a row of a table; the cells are HTML."""
    return f"<tr><th>{title}</th>{''.join(f'<{cell}>{text}</{cell}>' for text in cells)}</tr>"


def paragraphs(lines: Sequence[str]) -> str:
    """Returns lines of text as paragraphs."""
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def wrapped(content: str) -> str:
    """Returns the content inside the element that the style is for."""
    return f'{STYLE}<div class="genpool">{content}</div>'

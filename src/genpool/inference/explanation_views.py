"""Explanations as tables for the terminal, and as HTML, in which every word is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import resources
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


class Column(NamedTuple):
    """One value for each word of a sentence: cells of a table, or shaded words with notes."""

    title: str
    values: Values
    largest: float  # what is darkest
    turns: str = ""  # what the words turn by degrees, "vector" or "head"; else changes with a sign
    weights: Values | None = None

    def notes(self) -> list[str]:
        if not self.turns:  # what rounds to zero has a plus
            return [f"{round(float(value), 3) + 0.0:+.3f}" for value in self.values]
        notes = [f"turns the {self.turns} by {value:.1f}°" for value in self.values]
        if self.weights is None:
            return notes
        return [f"{note}, weight {w:.3f}" for note, w in zip(notes, self.weights, strict=True)]

    def cells(self) -> list[str]:
        texts = [f"{value:5.1f}" for value in self.values] if self.turns else self.notes()
        scale = (len(SHADES) - 1) / (self.largest or 1.0)
        shades = [SHADES[round(abs(float(value)) * scale)] for value in self.values]
        cells = [f"{text} {dark}" for text, dark in zip(texts, shades, strict=True)]
        if self.weights is None:
            return cells
        return [f"{cell} {weight:.3f}" for cell, weight in zip(cells, self.weights, strict=True)]


def sentence_columns(explanation: Explanation) -> list[Column]:
    """Returns what is shown of a sentence: its vector, its label, each of its heads."""
    influence = explanation.vector_influence
    columns = [Column("vector", influence, largest(influence), "vector")]
    if explanation.prediction is not None:
        columns += changes(explanation.prediction.label, explanation.prediction.influence)
    heads = zip(explanation.head_influence, explanation.token_weights, strict=True)
    for number, (influence, weights) in enumerate(heads, start=1):
        columns.append(Column(f"head {number}", influence, largest(influence), "head", weights))
    return columns


def pair_columns(explanation: PairExplanation) -> list[list[Column]]:
    """Returns what is shown of the words of both sentences: similarity, then the label."""
    columns = [changes("similarity", explanation.similarity_influence)]
    if explanation.prediction is not None:
        columns.append(changes(explanation.prediction.label, explanation.prediction.influence))
    return columns


def changes(title: str, influence: Sequence[Values]) -> list[Column]:
    """Returns signed values of each sentence; the largest of all sentences is darkest."""
    return [Column(title, values, max(map(largest, influence))) for values in influence]


def largest(values: Values) -> float:
    return float(np.abs(values).max(initial=0.0))


def label_lines(prediction: LabelExplanation | None) -> list[str]:
    """Returns the label with the probabilities of all labels, if there is one."""
    if prediction is None:
        return []
    shares = zip(prediction.labels, prediction.probabilities, strict=True)
    probabilities = ", ".join(f"{name} {share:.3f}" for name, share in shares)
    return [f"label {prediction.label} ({probabilities})"]


def pair_lines(explanation: PairExplanation) -> list[str]:
    """Returns the similarity of a pair and of its heads, and the label."""
    heads = enumerate(explanation.head_similarity, start=1)
    cosines = ", ".join(f"head {number} {cosine:.3f}" for number, cosine in heads)
    similarity = f"similarity {explanation.similarity:.3f} ({cosines})"
    return [similarity, *label_lines(explanation.prediction)]


def tree_lines(explanation: Explanation) -> list[str]:
    return [f"tree {explanation.tree}"] if explanation.tree else []


def head_names(heads: int) -> list[str]:
    return [f"head {number}" for number in range(1, heads + 1)]


# --- tables


def sentence_table(explanation: Explanation) -> str:
    """Returns the influence and the weights of a sentence: a line per token."""
    if not explanation.tokens:
        return NO_TOKENS
    parts = [
        label_lines(explanation.prediction),
        [*token_table(explanation.tokens, sentence_columns(explanation)), "", SENTENCE_LEGEND],
        tree_lines(explanation),
    ]
    overlap = explanation.head_overlap
    if len(overlap) > 1:
        shares = [[f"{share:.2f}" for share in column] for column in overlap]
        names = head_names(len(overlap))
        columns = [[name, *cells] for name, cells in zip(names, shares, strict=True)]
        parts.append([OVERLAP_LEGEND, *table(names, columns)])
    return blocks(parts)


def pair_table(explanation: PairExplanation) -> str:
    """Returns the similarity, the label, and the influence of the words of both sentences."""
    parts = [pair_lines(explanation)]
    for side, *columns in zip(explanation.sentences, *pair_columns(explanation), strict=True):
        parts += [token_table(side.tokens, columns), tree_lines(side)]
    return blocks([*parts, [PAIR_LEGEND]])


def blocks(parts: Sequence[Sequence[str]]) -> str:
    """Returns the lines of all parts that have any, with empty lines in between."""
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def token_table(tokens: Sequence[Token], columns: Sequence[Column]) -> list[str]:
    """Returns the lines of a table with a word and its cells per line."""
    if not tokens:
        return [NO_TOKENS]
    words = [token.text for token in tokens]
    return table(words, [[column.title, *column.cells()] for column in columns])


def table(words: Sequence[str], columns: Sequence[Sequence[str]]) -> list[str]:
    """Returns lines: the titles of the columns, then one word and its cells per line."""
    first, widths = max(map(len, words)), [max(map(len, cells)) + 3 for cells in columns]
    lines = []
    for word, *cells in zip(["", *words], *columns, strict=True):
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
WORD = (
    '<span style="background:rgba({colour},{alpha:.2f});color:{ink}" title="{note}">{word}</span> '
)


def page(title: str, content: str) -> str:
    """Returns a complete HTML document."""
    return PAGE.format(title=html.escape(title), content=content)


def sentence(explanation: Explanation) -> str:
    """Returns the sentence once per head, shaded by influence and by weight, and the overlap."""
    tokens, overlap = explanation.tokens, explanation.head_overlap
    tree, label = tree_lines(explanation), label_lines(explanation.prediction)
    rows = [row("", "by influence", "by weight", cell="th")]
    for column in sentence_columns(explanation):
        cells, weights = [shaded(tokens, column)], column.weights
        if weights is not None:
            by_weight = column._replace(values=weights, largest=largest(weights))
            cells.append(shaded(tokens, by_weight, column.notes()))
        rows.append(row(html.escape(column.title), *cells, *[""] * (2 - len(cells))))
    content = paragraphs([explanation.sentence, *tree, *label])
    content += f"<table>{''.join(rows)}</table>{paragraphs([HTML_LEGEND])}"
    return wrapped(content + (overlap_matrix(overlap) if len(overlap) > 1 else ""))


def pair(explanation: PairExplanation) -> str:
    """Returns the similarity, the label, and the words of both sentences that decide them."""
    content = paragraphs(pair_lines(explanation))
    for columns in pair_columns(explanation):
        sides = zip(explanation.sentences, columns, strict=True)
        cells = [shaded(side.tokens, column) for side, column in sides]
        content += f"<table>{row(html.escape(columns[0].title), *cells)}</table>"
    trees = [line for side in explanation.sentences for line in tree_lines(side)]
    return wrapped(content + paragraphs([*trees, PAIR_LEGEND]))


def shaded(tokens: Sequence[Token], column: Column, notes: Sequence[str] = ()) -> str:
    """Returns shaded words: the largest value is darkest, negative ones are orange."""
    scale = column.largest or 1.0
    spans = [
        WORD.format(
            colour=POSITIVE if value >= 0 else NEGATIVE,
            alpha=0.85 * float(abs(value)) / scale,
            ink="#fff" if abs(value) > 0.8 * scale else "#1c2430",
            note=html.escape(note),
            word=html.escape(token.text),
        )
        for token, value, note in zip(tokens, column.values, notes or column.notes(), strict=True)
    ]
    return "".join(spans) or NO_TOKENS


def overlap_matrix(overlap: Values) -> str:
    """Returns the overlap of the heads as a shaded matrix."""
    names = head_names(len(overlap))
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
    style = (resources.files(__package__) / "explanation.css").read_text(encoding="utf-8")
    return f'<style>\n{style}</style><div class="genpool">{content}</div>'

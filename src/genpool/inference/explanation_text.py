"""Explanations as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from genpool.inference.explanation import Explanation, LabelExplanation, PairExplanation

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

"""The drawings of the documentation, from the embedded encoder's own weights.

python -m benchmarks.release.doc_pictures    writes docs/pictures/heads.svg
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from genpool import SentenceEncoder

SENTENCE = "A small dog runs in the park."
#: dimensions that are drawn: those whose weights differ most between the words
DIMENSIONS = 60
OUT = Path(__file__).parents[2] / "docs" / "pictures" / "heads.svg"
INK, COLORS = "#1f2937", "viridis"


def draw_heads(encoder: SentenceEncoder) -> Figure:
    """Returns the weights of two heads, as scalars and as vectors."""
    explanation = encoder.explain(SENTENCE)
    tokens = [token.text for token in explanation.tokens]
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    axes = figure.subplots(
        2, 2, width_ratios=[1, 9], gridspec_kw={"wspace": 0.03, "hspace": 0.08}, sharey=True
    )
    for head, (left, right) in enumerate(axes):
        weights = explanation.weights[head]  # (tokens, dim)
        chosen = np.argsort(weights.std(axis=0))[-DIMENSIONS:]
        # Dimensions that look at the same word stand together.
        order = sorted(
            chosen, key=lambda dim: (int(weights[:, dim].argmax()), -weights[:, dim].max())
        )
        scale = float(weights[:, chosen].max())
        left.imshow(
            weights.mean(axis=1, keepdims=True), cmap=COLORS, vmin=0, vmax=scale, aspect="auto"
        )
        picture = right.imshow(weights[:, order], cmap=COLORS, vmin=0, vmax=scale, aspect="auto")
        label_axes(left, right, tokens, head)
        figure.colorbar(picture, ax=right, pad=0.01, label="weight")
    axes[0][0].set_title("scalar", fontsize=9, color=INK)
    axes[0][1].set_title(f"vector-based: {DIMENSIONS} of the dimensions", fontsize=9, color=INK)
    return figure


def label_axes(left: Any, right: Any, tokens: list[str], head: int) -> None:
    """Writes the words and the head beside the pictures."""
    left.set_yticks(range(len(tokens)), tokens, fontsize=9)
    left.set_ylabel(f"head {head + 1}", color=INK)
    for axis in (left, right):
        axis.set_xticks([])
        axis.tick_params(length=0)
        for side in axis.spines.values():
            side.set_visible(False)


def main() -> None:
    """Writes the drawings."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    # Without a date, the same weights give the same file.
    draw_heads(SentenceEncoder.from_pretrained()).savefig(OUT, metadata={"Date": None})
    print(OUT)


if __name__ == "__main__":
    main()

"""What every head looks at, as pictures of tokens by dimensions (the paper's figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.errors import InputError
from genpool.evaluation.pictures import new_figure, save_figure

#: inches of a token's row and of a head's column
ROW_HEIGHT, HEAD_WIDTH = 0.19, 2.3
#: the colour scale leaves this share of the weights out at either end: single peaks would flatten
#: everything else
OUTLIERS = 0.005
MAX_NAME_CHARACTERS = 18


@dataclass(frozen=True)
class HeatmapPanel:
    """The heads of one model on one sentence.

    Attributes:
        title: what is written above.
        tokens: the words, from the top to the bottom.
        weights: (heads, tokens, dimensions), or (heads, tokens, 1) for scalar attention.
    """

    title: str
    tokens: Sequence[str]
    weights: NDArray[np.float32]


def heatmap_picture(panels: Sequence[HeatmapPanel], path: str | Path) -> None:
    """Draws the heads of one model beside each other, and several models below each other.

    Args:
        panels: one for each model, all on one colour scale.
        path: the file to write: .png, .svg or .pdf.

    Raises:
        InputError: there is no panel, or one without tokens.
    """
    if not panels or any(not panel.weights.size for panel in panels):
        raise InputError("there is nothing to draw; expected a sentence with one word or more.")
    heads = max(len(panel.weights) for panel in panels)
    heights = [max(1.0, ROW_HEIGHT * len(panel.tokens)) for panel in panels]
    figure = new_figure(1.6 + HEAD_WIDTH * heads, sum(heights) + 0.9 * len(panels))
    grid = figure.subplots(len(panels), heads, squeeze=False, height_ratios=heights)
    low, high = colour_limits(panels)
    image = None
    for row, panel in zip(grid, panels, strict=True):
        for number, axes in enumerate(row):
            if number >= len(panel.weights):
                axes.set_visible(False)
                continue
            image = axes.imshow(
                panel.weights[number],
                aspect="auto",
                cmap="magma_r",
                vmin=low,
                vmax=high,
                interpolation="nearest",
            )
            axes.set_title(f"head {number + 1}", fontsize=9)
            axes.tick_params(length=0, labelsize=7)
            names = [_shortened(token) for token in panel.tokens] if number == 0 else []
            axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
            if number > 0:
                axes.set_yticks([])
            axes.set_xticks([0, panel.weights.shape[2] - 1], ["1", str(panel.weights.shape[2])])
        row[0].set_ylabel(panel.title, fontsize=9)
        row[len(panel.weights) // 2].set_xlabel("dimension", fontsize=8)
    if image is not None:
        bar = figure.colorbar(image, ax=grid, fraction=0.015, pad=0.01)
        bar.set_label("attention weight", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)
    save_figure(figure, path)


def colour_limits(panels: Sequence[HeatmapPanel]) -> tuple[float, float]:
    """Returns the weights at the two ends of the colour scale that all panels share."""
    weights = np.concatenate([panel.weights.ravel() for panel in panels])
    low, high = np.quantile(weights, [OUTLIERS, 1 - OUTLIERS])
    return float(low), max(float(high), float(low) + 1e-9)


def _shortened(token: str) -> str:
    return token if len(token) <= MAX_NAME_CHARACTERS else token[: MAX_NAME_CHARACTERS - 1] + "…"

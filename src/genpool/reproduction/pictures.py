"""The pictures of a reproduction: figure 2, and the data of figure 3."""

from __future__ import annotations

import math
from pathlib import Path

from genpool.errors import FolderError
from genpool.evaluation.heatmaps import HeatmapPanel, heatmap_picture
from genpool.evaluation.pictures import new_figure, save_figure
from genpool.model import SentenceEncoder
from genpool.reproduction.figure2 import FAMILIES, FIGURE2
from genpool.reproduction.figure3 import FIGURE3, SENTENCE
from genpool.reproduction.results import Results

COLOURS = {"scalar": "#2e7d32", "vector": "#1f5f8b"}
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
#: opacity of the curves, from few heads to many
OPACITIES = (0.4, 0.55, 0.7, 0.85, 1.0)


def draw_figure2(results: Results, path: Path) -> bool:
    """Draws dev accuracy over the epochs; returns whether there was anything to draw."""
    column = FIGURE2.columns[0]
    curves = []
    for row in FIGURE2.rows:
        record = results.record(row, column)
        if record is not None:
            curves.append((row, record))
    if not curves:
        return False
    figure = new_figure(7.5, 4.6)
    axes = figure.subplots()
    for family, system in FAMILIES.items():
        own = [(row, record) for row, record in curves if row.system == system]
        for (row, record), style, opacity in zip(own, STYLES, OPACITIES, strict=False):
            percents = [100 * value for value in record.dev_curve]
            axes.plot(
                record.dev_epochs,
                percents,
                color=COLOURS[family],
                alpha=opacity,
                linestyle=style,
                marker="o",
                markersize=3.5,
                linewidth=1.6,
                label=row.title,
            )
    longest = max(max(record.dev_epochs) for _, record in curves)
    axes.set_xticks(range(1, math.ceil(longest) + 1))
    axes.set_xlabel("epoch")
    axes.set_ylabel("dev accuracy, %")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, ncols=2, frameon=False)
    save_figure(figure, path)
    return True


def draw_figure3(results: Results, path: Path, sentence: str | None = None) -> bool:
    """Draws every head of one sentence, with and without a penalty, on one colour scale."""
    column = FIGURE3.columns[0]
    panels = []
    for row in FIGURE3.rows:
        record = results.record(row, column)
        if record is None:
            return False
        folder = results.reproduction.out / record.predictions
        try:
            model = SentenceEncoder.from_pretrained(folder.parent / "best")
        except FolderError:  # the figures of the runs are here, but not the models
            return False
        explanation = model.explain(sentence or SENTENCE)
        words = [token.text for token in explanation.tokens]
        penalty = str(record.cell["penalty"])
        title = (
            "no penalty"
            if penalty == "none"
            else f"penalty on attention, weight {penalty.split()[1]}"
        )
        panels.append(HeatmapPanel(title, words, explanation.weights))
    heatmap_picture(panels, path)
    return True

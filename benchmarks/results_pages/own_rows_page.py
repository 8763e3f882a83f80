"""The page results/own_rows.md: accuracy and time of every way, and the goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.pages import markdown_table, versions_line, write_page
from benchmarks.results_pages.own_rows_data import DRAWS, IMDB_TEST_ROWS, ROWS, TASKS

OURS, TFIDF, EMBEDDED = "genpool fit", "TF-IDF + LR", "embedded vectors + LR"
MINILM, SETFIT = "MiniLM vectors + LR", "SetFit on MiniLM"
#: the columns of the page
ORDER = (OURS, TFIDF, EMBEDDED, MINILM, SETFIT)
#: one draw, measured earlier with a loop that was written for it; in %
BY_HAND = {
    ("TREC", 200): 75.6,
    ("TREC", 1000): 91.0,
    ("TREC", 5000): 94.0,
    ("SST-5", 200): 34.1,
    ("SST-5", 1000): 41.5,
    ("SST-5", 5000): 47.0,
    ("IMDB", 200): 79.0,
    ("IMDB", 1000): 83.7,
}
COMMAND = "GENPOOL_DATA=DATA python -m benchmarks.results_pages.own_rows"
INTRODUCTION = f"""Accuracy on the test rows in %, the mean of {len(DRAWS)} draws of training rows
(the lowest and the highest), and the CPU seconds from the rows to the classifier. `genpool fit` is
`TextClassifier.fit(texts, labels)` with its defaults, which were chosen on TREC and SST-5 dev
rows. LR is logistic regression, whose C is chosen by three-fold cross-validation on the training
rows; its seconds include the vectors of the training rows. SetFit has the settings of its paper
(20 pairs per row and label, one epoch) and is measured with 200 rows only, on IMDB with one draw,
because it takes long. The goals compare the draws that both ways were measured with. The test sets
of TREC and SST-5 are the standard ones; of IMDB, which is one file here, {IMDB_TEST_ROWS:,} rows
were drawn once."""

Cell = dict[str, Any]
#: a task and its number of rows
Place = tuple[str, int]
PLACES: list[Place] = [(task, rows) for task in TASKS for rows in ROWS]


class Results:
    """The cells by method, task and number of rows."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = list(cells)
        measured = {cell["method"] for cell in cells}
        self.methods = [method for method in ORDER if method in measured]

    def by_draw(self, method: str, place: Place, key: str = "accuracy") -> dict[int, float]:
        """Returns a value of every draw."""
        return {
            cell["draw"]: cell[key]
            for cell in self.cells
            if (cell["method"], cell["task"], cell["rows"]) == (method, *place)
        }

    def values(self, method: str, place: Place, key: str = "accuracy") -> list[float]:
        """Returns a value of all draws."""
        return list(self.by_draw(method, place, key).values())

    def means(
        self, other: str, place: Place, key: str = "accuracy", other_key: str | None = None
    ) -> tuple[float, float] | None:
        """Returns the means of ours and another way over the draws of both; None without any."""
        ours, theirs = self.by_draw(OURS, place, key), self.by_draw(other, place, other_key or key)
        draws = sorted(set(ours) & set(theirs))
        if not draws:
            return None
        return (
            float(np.mean([ours[draw] for draw in draws])),
            float(np.mean([theirs[draw] for draw in draws])),
        )


def write_own_rows(cells: Sequence[Cell]) -> None:
    """Writes the page from the finished cells."""
    results = Results(cells)
    threads = sorted({cell["threads"] for cell in cells})
    write_page(
        "own_rows",
        [
            "# Learning from your own rows",
            " ".join(INTRODUCTION.split()),
            _table(results, "accuracy", _accuracy_text),
            "CPU seconds of training, mean over the draws:",
            _table(results, "train_seconds", _seconds_text),
            "## Goals",
            markdown_table(("compared with", "goal", "measured"), goals(results), text=3),
            f"```bash\n{COMMAND}\n```",
            f"Threads: {', '.join(map(str, threads))}; the machine did other work at the same "
            f"time. {versions_line()}.",
        ],
    )


def _table(results: Results, key: str, text: Callable[[list[float]], str]) -> str:
    rows = [
        [f"{task} {rows:,}", *(text(results.values(m, (task, rows), key)) for m in results.methods)]
        for task, rows in PLACES
    ]
    return markdown_table(["rows", *results.methods], rows)


def _accuracy_text(values: list[float]) -> str:
    if not values:
        return "-"
    percents = [100 * value for value in values]
    missing = "" if len(values) >= len(DRAWS) else f", {len(values)} of {len(DRAWS)} draws"
    return f"{np.mean(percents):.1f} ({min(percents):.1f} to {max(percents):.1f}{missing})"


def _seconds_text(values: list[float]) -> str:
    return f"{np.mean(values):.1f}" if values else "-"


def goals(results: Results) -> list[tuple[str, str, str]]:
    """Returns each goal, in how many of the measured places it is met, and the lead elsewhere."""
    all_places = len(PLACES)

    def count(
        title: str,
        goal: str,
        lead: Callable[[Place], float | None],
        at: int,
        allowed: float = 0.0,
    ) -> None:
        leads = {place: lead(place) for place in PLACES}
        known = {place: value for place, value in leads.items() if value is not None}
        missed = [
            f"{task} {rows:,} ({100 * value:+.2f})"
            for (task, rows), value in known.items()
            if value + allowed < 0
        ]
        text = f"{len(known) - len(missed)} of {len(known)} measured"
        text += f"; missed: {', '.join(missed)}" if missed else ""
        rows.append((title, goal.format(at=at), text))

    def over(other: str, places: set[Place] | None = None) -> Callable[[Place], float | None]:
        def lead(place: Place) -> float | None:
            means = results.means(other, place)
            if means is None or (places is not None and place not in places):
                return None
            return means[0] - means[1]

        return lead

    def over_hand(place: Place) -> float | None:
        means = results.means(OURS, place)
        return None if means is None or place not in BY_HAND else means[0] - BY_HAND[place] / 100

    few = [(task, ROWS[0]) for task in TASKS]
    rows: list[tuple[str, str, str]] = []
    count("a hand-written loop, one draw", "level (1 point) in {at}", over_hand, len(BY_HAND), 0.01)
    count(TFIDF, "ahead in {at}", over(TFIDF), all_places)
    count(EMBEDDED, "level (0.5 points) in {at}", over(EMBEDDED), all_places, 0.005)
    count(MINILM, "ahead in at least {at} of 9", over(MINILM), 6)
    count(SETFIT, "TREC 200: within 3 points", over(SETFIT, {few[0]}), 1, 0.03)
    count(SETFIT, "ahead on the other two", over(SETFIT, set(few[1:])), 2)
    return [*rows, *_time_goals(results, few)]


def _time_goals(results: Results, few: list[Place]) -> list[tuple[str, str, str]]:
    def ratio(other: str, places: Sequence[Place], key: str = "train_seconds") -> str:
        parts = []
        for task, rows in places:
            means = results.means(other, (task, rows), "train_seconds", key)
            if means is not None:
                ours, theirs = means
                parts.append(
                    f"{task} {rows:,}: {ours:.1f} s against {theirs:.1f} s ({ours / theirs:.2f})"
                )
        return "; ".join(parts) or "not measured"

    short = [("TREC", 1000)]
    return [
        (f"{MINILM}, time", "a fifth", ratio(MINILM, PLACES)),
        (f"{SETFIT}, time", "a tenth", ratio(SETFIT, few)),
        (
            "fit on 1,000 short texts",
            "below 60 s; beside one encoding pass of MiniLM",
            ratio(MINILM, short, "encode_seconds"),
        ),
    ]

"""The rows that `fit` is given, as examples: texts or pairs, and their labels or scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from genpool.data.reader import Example
from genpool.errors import InputError
from genpool.text.validation import label_names, read_labels, read_pairs, read_scores, read_texts

Task = Literal["label", "score"]


def text_examples(texts: Any, targets: Any, task: Task, what: str) -> list[Example]:
    """Returns texts and their labels or scores as examples; `what` is "training" or "dev"."""
    rows = [(text, None) for text in read_texts(texts, f"the {what} texts")]
    return _examples(rows, targets, task, what)


def pair_examples(pairs: Any, targets: Any, task: Task, what: str) -> list[Example]:
    """Returns pairs of sentences and their labels or scores as examples."""
    return _examples(read_pairs(pairs, f"the {what} pairs"), targets, task, what)


def _examples(
    rows: Sequence[tuple[str, str | None]], targets: Any, task: Task, what: str
) -> list[Example]:
    if not rows:
        raise InputError(f"there are no {what} rows; expected at least two.")
    name = f"the {what} {task}s"
    if task == "score":
        scores = read_scores(targets, len(rows), name)
        return [Example(None, *row, score=score) for row, score in zip(rows, scores, strict=True)]
    labels = label_names(read_labels(targets, len(rows), name), name)
    return [Example(label, *row) for row, label in zip(rows, labels, strict=True)]

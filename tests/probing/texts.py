"""Texts of the small vocabulary, with a label that one of their words decides."""

from __future__ import annotations

import numpy as np


def make_texts(count: int, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """Returns different texts with their labels: who, man or dog, is named in them."""
    others = ["the", "a", "sleeps", "rests", "runs", "red", "not", "two", ".", ","]
    rows: dict[str, str] = {}
    while len(rows) < count:
        who = ("man", "dog")[len(rows) % 2]
        words = [str(word) for word in random.choice(others, size=random.integers(3, 8))]
        words.insert(int(random.integers(len(words) + 1)), who)
        rows.setdefault(" ".join(words), f"the {who}")
    return list(rows), list(rows.values())

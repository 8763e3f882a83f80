"""One example: what every reader gives and everything behind the readers takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence or a pair of sentences, with what is known about it.

    `label` is None where the file does not give one (an unlabelled test set, a similarity task);
    `score` is the number of a similarity task. With `tokenized` the texts are tokens joined by
    one space, and splitting them at the spaces is all the tokenizing they need.
    """

    label: str | None
    first: str
    second: str | None = None
    genre: str | None = None
    id: str | None = None
    score: float | None = None
    tokenized: bool = False

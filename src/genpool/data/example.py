"""One example: what every reader yields and everything downstream of the readers takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from genpool.tensors.annotations import Annotation


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence or a pair of sentences, with what is known about it.

    Args:
        label: the gold label; None if the data has none (an unlabelled test set, a similarity
            task).
        first: the sentence, or the first of a pair.
        second: the second sentence of a pair; None (default) for a single sentence.
        genre: the genre of the text; None (default) if unknown.
        id: the identifier of the row in its data set; None (default) if it has none.
        score: the gold score of a similarity task; None (default) if there is none.
        tokenized: True if the texts are tokens joined by single spaces, so that splitting them at
            the spaces is all the tokenizing they need. Default False.
        annotations: of each sentence the integers per token that the data has for an encoder, or
            None (`Reader.annotator`). Default: empty; it does not count when examples are compared.
        kept: the values of the columns that a reader was asked to keep, as its table holds them.
            Default: empty; it does not count when examples are compared.

    Example:
        >>> Example("entailment", "A dog runs.", "An animal moves.")
    """

    label: str | None
    first: str
    second: str | None = None
    genre: str | None = None
    id: str | None = None
    score: float | None = None
    tokenized: bool = False
    annotations: tuple[Annotation | None, ...] = field(default=(), compare=False)
    kept: tuple[object, ...] = field(default=(), compare=False)

"""NumPy arrays, without PyTorch: unit vectors, and integers beside the tokens of a sentence.

An encoder class names the kind of integers that it reads, such as a syntax tree, as its
`annotator_class`. Readers find them in the columns of a table, the text pipeline makes them for
every sentence, and they arrive in `packing.annotations`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

#: the integers of one sentence: (tokens, columns)
Annotation = NDArray[np.int32]
#: the words of each sentence
Sentences = Sequence[Sequence[str]]
Float = TypeVar("Float", np.float32, np.float64)


def unit_rows(vectors: NDArray[Float]) -> NDArray[Float]:
    """Returns finite vectors (..., dim) of any magnitude with length 1; zeros stay zeros."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0)  # (..., 1)
    scaled = vectors / np.where(largest > 0, largest, 1)  # squares of 1e-200 would vanish
    # Sums along a row, and no matrix product, whose order of additions depends on the row.
    lengths = np.sqrt((scaled * scaled).sum(axis=-1, keepdims=True))  # (..., 1)
    unit = scaled / np.where(lengths > 0, lengths, 1)
    return unit.astype(vectors.dtype, copy=False)


class Annotator(ABC):
    """Annotates tokenized sentences; `counts` says where the annotations came from so far."""

    #: what the annotations are, for people: "syntax trees"
    name: ClassVar[str]
    #: integers per token
    columns: ClassVar[int]

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        #: the annotations that data has for sentences, inside a block of `knowing`
        self.known: dict[tuple[str, ...], Annotation] = {}

    @abstractmethod
    def annotate(
        self, sentences: Sentences, max_length: int | None, sentence_ends: bool
    ) -> list[Annotation]:
        """Returns the annotation (tokens, columns) of every sentence.

        Sentences of max_length may have been truncated. With sentence_ends an annotation has a
        begin and an end token around the sentence.
        """

    @abstractmethod
    def report(self) -> str:
        """Returns `counts` as a sentence for people."""

    @classmethod
    @abstractmethod
    def column(cls, text_column: str, names: Collection[str]) -> str | None:
        """Returns the column of a table with the annotations of its column of texts, if any."""

    @classmethod
    @abstractmethod
    def read(cls, column: str, text: str) -> Annotation:
        """Returns the annotation that a cell of a table describes; InputError if it has none."""

    @contextmanager
    def knowing(
        self, sentences: Sentences, annotations: Sequence[Annotation | None]
    ) -> Iterator[None]:
        """Inside the block, `known` has the annotations that data has for these sentences."""
        pairs = zip(map(tuple, sentences), annotations, strict=True)
        self.known = {words: annotation for words, annotation in pairs if annotation is not None}
        try:
            yield
        finally:
            self.known = {}


def pad_annotations(annotations: Sequence[Annotation], time: int) -> NDArray[np.int64]:
    """Returns annotations as (batch, time, columns), zeros at padding on the right."""
    columns = annotations[0].shape[1] if len(annotations) else 1
    padded = np.zeros((len(annotations), time, columns), dtype=np.int64)
    for row, annotation in enumerate(annotations):
        padded[row, : len(annotation)] = annotation
    return padded

"""Examples in memory, read like those of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from genpool.data.reader import Example, Reader
from genpool.data.rows import Record


class MemoryReader(Reader):
    """Reads lists of examples.

    Args:
        examples: the examples of each split, by its name; "train" is among them.
    """

    needs_path = False

    def __init__(self, examples: Mapping[str, Sequence[Example]]) -> None:
        super().__init__()
        self._examples = dict(examples)

    @property
    def is_pair(self) -> bool:
        """Whether the examples have two sentences."""
        return self._examples["train"][0].second is not None

    def splits(self) -> list[str]:
        """Returns the names of the splits."""
        return list(self._examples)

    def records(self, split: str) -> Iterator[Record]:
        for row, example in enumerate(self._examples[split]):
            yield Record("memory", row, {"example": example})

    def example(self, values: Mapping[str, object], split: str) -> Example:
        example = values["example"]
        if not isinstance(example, Example):
            raise TypeError(f"expected an Example, not {type(example).__name__}")
        return example

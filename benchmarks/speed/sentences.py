"""What the encoding comparisons encode: the raw SNLI test set, or generated scenes without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.data import data_path, has_data
from genpool.data import Example, TableReader, open_reader

SNLI_TEST = "snli/test.raw.tsv.xz"


def make_sentences(count: int) -> list[str]:
    """Returns premises and hypotheses in turns, the same ones every time."""
    examples = snli_test() if has_data(SNLI_TEST) else _generated(count)
    sentences: list[str] = []
    for example in examples:
        sentences += [example.first, str(example.second)]
        if len(sentences) >= count:
            break
    return (sentences * (count // len(sentences) + 1))[:count]


def snli_test() -> list[Example]:
    """Returns the SNLI test set as people wrote it, which must be among the data sets."""
    reader = TableReader(data_path(SNLI_TEST))
    return list(reader.read(reader.splits()[0]))


def _generated(count: int) -> Iterator[Example]:
    examples: Iterable[Example] = open_reader("rules", "", sizes=(count, 10, 10)).read("train")
    return iter(examples)

"""What the encoding comparisons encode: the raw SNLI test set, or generated scenes without it."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.data import data_path, has_data
from genpool.data import Example, TableReader
from genpool.reproduction.rules import RulesReader

SNLI_TEST = "snli/test.raw.tsv.xz"


def make_sentences(count: int) -> list[str]:
    """Returns premises and hypotheses in turns, the same ones every time."""
    examples: Iterable[Example]
    if has_data(SNLI_TEST):
        examples = snli_test()
    else:
        examples = RulesReader(sizes=(count, 10, 10)).read("train")
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

"""What the encoding comparisons encode: the SNLI test set as people wrote it, or made-up scenes."""

from __future__ import annotations

import os
from pathlib import Path

from genpool.data import TableReader, open_reader


def data_folder() -> Path:
    return Path(os.environ.get("GENPOOL_DATA", "../shared/data"))


def some_sentences(count: int) -> list[str]:
    """Premises and hypotheses in turns, as many as asked for; the same ones every time."""
    file = data_folder() / "snli" / "test.raw.tsv.xz"
    if file.is_file():
        reader = TableReader(file)
        examples = reader.read(reader.splits()[0])
    else:
        examples = open_reader("rules", "", sizes=(count, 10, 10)).read("train")
    found: list[str] = []
    for example in examples:
        found += [example.first, str(example.second)]
        if len(found) >= count:
            return found[:count]
    return (found * (count // len(found) + 1))[:count]

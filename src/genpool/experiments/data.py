"""Data sets that a reproduction makes for itself, in its own folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from genpool.data import TableReader, seeded_order
from genpool.data.rules.generate import generate
from genpool.disk.atomic_file import atomic_file

#: rows of MultiNLI dev matched that are dev set and in-domain test set; the rest is trained on
HELD_OUT = 1000
#: rules that can be told from the words of the two sentences
TEXT_RULES = ("negation", "passive", "number")


def mixed_nli(data: Path, folder: Path) -> None:
    """Writes train, dev, in and cross from SNLI's training pairs and MultiNLI's dev sets.

    The rows of dev matched are shuffled by a fixed seed: the last 1,000 are the in-domain test
    set, the 1,000 before them the dev set, all others are trained on beside SNLI's pairs.
    """
    snli = _pairs(data / "snli" / "train.tsv.xz")
    matched = _pairs(data / "mnli" / "dev_matched.tsv.xz")
    shuffled = [matched[row] for row in seeded_order(len(matched), seed=0)]
    _write(folder / "train.tsv", [*snli, *shuffled[: -2 * HELD_OUT]])
    _write(folder / "dev.tsv", shuffled[-2 * HELD_OUT : -HELD_OUT])
    _write(folder / "in.tsv", shuffled[-HELD_OUT:])
    _write(folder / "cross.tsv", _pairs(data / "mnli" / "dev_mismatched.tsv.xz"))


def generated_texts(folder: Path, seed: int) -> None:
    """Writes train, dev and test tables of single texts, whose label is the rule behind them."""
    for split, rows in (("train", 1500), ("dev", 300), ("test", 300)):
        pairs = [pair for pair in generate(rows, seed) if pair.rule in TEXT_RULES]
        seed += 1
        texts = [(pair.rule, f"{pair.premise} {pair.hypothesis}") for pair in pairs]
        _write(folder / f"{split}.tsv", texts, ("label", "text"))


def _pairs(path: Path) -> list[tuple[str, str, str]]:
    reader = TableReader(path)
    return [
        (str(example.label), example.first, str(example.second))
        for example in reader.read(reader.splits()[0])
    ]


def _write(
    path: Path,
    rows: Iterable[tuple[str, ...]],
    header: tuple[str, ...] = ("label", "premise", "hypothesis"),
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        for row in (header, *rows):
            # A tab or a line break inside a text would be taken for the end of its field; quotes
            # are characters like any other.
            file.write("\t".join(" ".join(field.split()) for field in row) + "\n")

"""The data sets that are made for a scale: parts of real ones, and generated texts.

Real text is tokenized once, here: in every cell again, it took up to a sixth of the cell's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from genpool.data import TableReader
from genpool.data.splits import seeded_order
from genpool.disk.atomic import atomic_file
from genpool.reproduction.rules import generate
from genpool.text import WordTokenizer

#: rows of MultiNLI dev matched that are dev set and in-domain test set; the rest is trained on
HELD_OUT = 1000
#: rules that can be told from the words of the two sentences
TEXT_RULES = ("negation", "passive", "number")


def mixed_nli(data: Path, folder: Path) -> None:
    """Writes train, dev, in and cross from SNLI's training pairs and MultiNLI's dev sets."""
    snli = _pairs(data / "snli" / "train.tsv.xz")
    matched = _pairs(data / "mnli" / "dev_matched.tsv.xz")
    shuffled = [matched[row] for row in seeded_order(len(matched), seed=0)]
    header = ("label", "premise", "hypothesis")
    _write(folder / "train.tsv", header, [*snli, *shuffled[: -2 * HELD_OUT]])
    _write(folder / "dev.tsv", header, shuffled[-2 * HELD_OUT : -HELD_OUT])
    _write(folder / "in.tsv", header, shuffled[-HELD_OUT:])
    _write(folder / "cross.tsv", header, _pairs(data / "mnli" / "dev_mismatched.tsv.xz"))


def tokenized_texts(data: Path, folder: Path, source: str, train_rows: int | None = None) -> None:
    """Writes train, dev and test of single texts; of train, a number of rows drawn by a seed."""
    reader = TableReader(data / source)
    for split in ("train", "dev", "test"):
        rows = [(str(example.label), example.first) for example in reader.read(split)]
        if split == "train" and train_rows is not None:
            drawn = sorted(seeded_order(len(rows), seed=0)[:train_rows].tolist())
            rows = [rows[row] for row in drawn]
        _write(folder / f"{split}.tsv", ("label", "text"), _tokenized(rows))


def generated_texts(data: Path, folder: Path, seed: int) -> None:
    """Writes train, dev and test tables of single texts, whose label is the rule behind them."""
    for split, rows in (("train", 1500), ("dev", 300), ("test", 300)):
        pairs = [pair for pair in generate(rows, seed) if pair.rule in TEXT_RULES]
        seed += 1
        texts = [(pair.rule, f"{pair.premise} {pair.hypothesis}") for pair in pairs]
        _write(folder / f"{split}.tsv", ("label", "text"), texts)


#: makes a data set from the folder --data, in another folder, by the names in scales.toml
PREPARE: dict[str, Callable[..., None]] = {
    function.__name__: function for function in (mixed_nli, tokenized_texts, generated_texts)
}


def _pairs(path: Path) -> list[tuple[str, ...]]:
    reader = TableReader(path)
    examples = reader.read(reader.splits()[0])
    return _tokenized(
        [(str(example.label), example.first, str(example.second)) for example in examples]
    )


def _tokenized(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Returns rows of a label and texts, each text as tokens joined by spaces."""
    labels, *columns = zip(*rows, strict=True)
    tokenizer = WordTokenizer()
    texts = [map(" ".join, tokenizer.words_batch(column)) for column in columns]
    return list(zip(labels, *texts, strict=True))


def _write(path: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        for row in (header, *rows):
            # A tab or a line break inside a text would be taken for the end of its field; quotes
            # are characters like any other.
            file.write("\t".join(" ".join(field.split()) for field in row) + "\n")

"""From a data folder and settings to a model and splits that are ready to train."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from genpool.data.base import Reader
from genpool.data.readers import open_reader
from genpool.data.splits import seeded_order, stratified_share
from genpool.errors import DataError
from genpool.model import Classifier, PairClassifier, TextClassifier
from genpool.text import Characters, TextPipeline, Vocabulary, WordTable, WordTokenizer
from genpool.training.build_encoder import build_encoder
from genpool.training.dataset import Split, Types, Words, read_split
from genpool.training.settings import DataSettings, RunSettings


@dataclass
class Prepared:
    """A model with fresh weights, and everything it will be trained and scored on.

    tests   further splits to score once, at the very end, by name; a split without labels gets
            predictions only
    notes   what a person should know about the preparation: rows left out, coverage of vectors
    """

    model: Classifier
    table: WordTable
    train: Split
    dev: Split
    tests: dict[str, Split]
    notes: dict[str, str]

    def fingerprint(self) -> int:
        """A number that differs where the words, the training rows or the dev rows do."""
        value = zlib.crc32("\n".join(self.model.text.vocabulary.words).encode())
        for split in (self.train, self.dev):
            for each in (split.tokens, split.starts, split.labels):
                value = zlib.crc32(np.ascontiguousarray(each).tobytes(), value)
        return value


@dataclass(frozen=True)
class SplitNames:
    """Which splits of a reader play which part; dev is None where it is a share of train."""

    train: str
    dev: str | None
    tests: list[str]


def choose_splits(reader: Reader, settings: DataSettings) -> SplitNames:
    present = reader.splits()
    # A single table is the training set, of which a share can be the dev set.
    train = "all" if present == ["all"] else "train"
    if train not in present:
        found = ", ".join(present)
        raise DataError(
            f"no training set: expected a split named 'train', found {found}", reader.place
        )
    dev = settings.dev or next((name for name in ("dev", "dev_matched") if name in present), None)
    if settings.dev_share is not None:
        dev = None
    elif dev is None:
        raise DataError(
            "no dev set to choose the best model on; add one, or take a share of the training "
            "rows: --set data.dev_share=0.1",
            reader.place,
        )
    asked = [dev, *settings.test] if dev else list(settings.test)
    for name in asked:
        if name not in present:
            raise DataError(f"no split named {name!r}; found {', '.join(present)}", reader.place)
    others = [name for name in present if name not in (train, dev)]
    return SplitNames(train, dev, list(settings.test) or others)


def prepare(settings: RunSettings, data: str | Path | None) -> Prepared:
    """Reads the data, builds the vocabulary, fills the word table, makes the model."""
    if data is None and settings.reader.name != "rules":
        raise DataError(f"the reader {settings.reader.name!r} needs the place of the data: --data")
    reader = open_reader(settings.reader.name, data or "", **settings.reader.options)
    names = choose_splits(reader, settings.data)
    tokenizer = WordTokenizer(settings.text.rules)
    types = Types()
    notes: dict[str, str] = {}
    # The pipeline of the model does not exist yet; until it does, this one cuts and counts.
    cutter = TextPipeline(
        tokenizer, Vocabulary.build({}), Characters(""), False, settings.text.max_length
    )
    words = cutter.words
    train, labels = _read_train(reader, names.train, types, words)
    train = _select(train, settings, notes)
    if not len(train):
        raise DataError("data.drop_length leaves no training row; give a larger one", reader.place)
    if settings.data.dev_share is not None:
        held = stratified_share(
            [labels[number] for number in train.labels],
            settings.data.dev_share,
            settings.training.seed,
        )
        chosen = set(held.tolist())
        dev = train.take(held)
        train = train.take([row for row in range(len(train)) if row not in chosen])
        notes["dev set"] = f"{len(dev):,} rows held out of the training set"
    else:
        dev = _read_scored(reader, str(names.dev), types, words, labels)
    tests = {name: _read_scored(reader, name, types, words, labels) for name in names.tests}
    _check_scored(reader, train, {str(names.dev or "dev"): dev, **tests})
    if reader.skipped:
        notes["rows left out"] = ", ".join(f"{n:,} {why}" for why, n in reader.skipped.items())
    if cutter.cut.sentences:
        notes["maximum length"] = str(cutter.cut)
    encoder = build_encoder(
        settings.model,
        settings.vocabulary,
        settings.vectors,
        settings.training.seed,
        types.counts(train.tokens),
        notes,
    )
    model: Classifier = (PairClassifier if reader.is_pair else TextClassifier)(encoder, labels)
    table = model.text.table()
    ready = [
        split.renumbered(table, types, settings.text.sentence_ends)
        for split in (train, dev, *tests.values())
    ]
    return Prepared(
        model, table, ready[0], ready[1], dict(zip(tests, ready[2:], strict=True)), notes
    )


def _check_scored(reader: Reader, train: Split, scored: dict[str, Split]) -> None:
    """The dev set, which comes first, must have labels; all must have as many sentences a row."""
    name, dev = next(iter(scored.items()))
    if not len(dev) or (dev.labels < 0).any():
        problem = "has rows without a label" if len(dev) else "is empty"
        raise DataError(
            f"the dev set {name!r} {problem}, so the best model cannot be chosen on it; mend it, "
            "or take a share of the training rows: --set data.dev_share=0.1",
            reader.place,
        )
    for name, split in scored.items():
        if len(split) and split.sides != train.sides:
            raise DataError(
                f"{name!r} has {split.sides} sentence(s) a row, the training set {train.sides}; "
                "name the columns: --set reader.first=... --set reader.second=...",
                reader.place,
            )


def _read_train(
    reader: Reader, name: str, types: Types, words: Words
) -> tuple[Split, tuple[str, ...]]:
    seen: dict[str, int] = {name: at for at, name in enumerate(reader.labels or ())}

    def number(label: str | None) -> int:
        if label is None:
            raise DataError("a training row has no label", reader.place)
        return seen.setdefault(label, len(seen))

    train = read_split(reader.read(name), types, words, number)
    if not len(train):
        raise DataError("the training set is empty; expected at least one row", reader.place)
    if reader.labels is not None:
        return train, tuple(reader.labels)
    labels = tuple(sorted(seen))
    if len(labels) < 2:
        raise DataError(
            f"all training rows have the label {labels[0]!r}; expected two labels or more",
            reader.place,
        )
    order = {seen[name]: at for at, name in enumerate(labels)}
    train.labels = train.labels.copy()
    train.labels[:] = [order[label] for label in train.labels]
    return train, labels


def _read_scored(
    reader: Reader,
    name: str,
    types: Types,
    words: Words,
    labels: tuple[str, ...],
) -> Split:
    def number(label: str | None) -> int:
        if label is not None and label not in labels:
            raise DataError(
                f"the label {label!r} appears in {name!r} but in no training row; "
                f"training has {', '.join(labels)}",
                reader.place,
            )
        return -1 if label is None else labels.index(label)

    return read_split(reader.read(name), types, words, number)


def _select(train: Split, settings: RunSettings, notes: dict[str, str]) -> Split:
    chosen = range(len(train))
    keep = list(chosen)
    if settings.data.train_rows is not None and settings.data.train_rows < len(keep):
        order = seeded_order(len(keep), settings.training.seed)
        keep = sorted(order[: settings.data.train_rows].tolist())
        notes["training rows"] = f"{len(keep):,} of {len(train):,}, chosen by seed"
    if settings.data.drop_length is not None:
        longest = train.lengths.max(axis=1)
        short = [row for row in keep if longest[row] < settings.data.drop_length]
        notes["long training rows"] = (
            f"{len(keep) - len(short):,} left out ({settings.data.drop_length} tokens or more)"
        )
        keep = short
    return train if len(keep) == len(train) else train.take(keep)

"""From a data folder and settings to a model and the splits that it is trained and scored on."""

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
from genpool.training.dataset import Split, SplitWords, WordIds, read_split
from genpool.training.settings import DataSettings, RunSettings, require_trainable

#: tokens that `text.sentence_ends` adds to a sentence
END_TOKENS = 2
#: the entry of results.json that is about the run, which no scored split can be named like
RUN_ENTRY = "run"


@dataclass
class Prepared:
    """A model with initial weights, and everything it is trained and scored on.

    Attributes:
        model: The classifier.
        table: The words of all splits.
        train: The training rows.
        dev: The rows that the best model is chosen on.
        tests: Further splits to score once, at the end, by name; a split without labels gets
            predictions only.
        notes: What a person should know about the preparation: rows left out, coverage of vectors.
    """

    model: Classifier
    table: WordTable
    train: Split
    dev: Split
    tests: dict[str, Split]
    notes: dict[str, str]

    def fingerprint(self) -> int:
        """Returns a checksum of the vocabulary, the training rows and the dev rows."""
        value = zlib.crc32("\n".join(self.model.text.vocabulary.words).encode())
        for split in (self.train, self.dev):
            for values in (split.tokens, split.starts, split.labels):
                value = zlib.crc32(np.ascontiguousarray(values).tobytes(), value)
        return value


@dataclass(frozen=True)
class SplitNames:
    """The splits of a reader by their use; dev is None if it is a share of train."""

    train: str
    dev: str | None
    tests: list[str]


def choose_splits(reader: Reader, settings: DataSettings) -> SplitNames:
    """Returns the names of the splits to train on, to select on and to score."""
    names = reader.splits()
    # A single table is the training set, of which a share can be the dev set.
    train = "all" if names == ["all"] else "train"
    if train not in names:
        raise DataError(
            f"no training set: expected a split named 'train', found {', '.join(names)}",
            reader.place,
        )
    dev = settings.dev or next((name for name in ("dev", "dev_matched") if name in names), None)
    if settings.dev_share is not None:
        dev = None
    elif dev is None:
        raise DataError(
            "no dev set to choose the best model on; add one, or take a share of the training "
            "rows: --set data.dev_share=0.1",
            reader.place,
        )
    for name in [dev, *settings.test] if dev else settings.test:
        if name not in names:
            raise DataError(f"no split named {name!r}; found {', '.join(names)}", reader.place)
    others = [name for name in names if name not in (train, dev)]
    tests = list(settings.test) or others
    if RUN_ENTRY in tests:
        raise DataError(f"no split to score may be named {RUN_ENTRY!r}; rename it", reader.place)
    return SplitNames(train, dev, tests)


def prepare(settings: RunSettings, data: str | Path | None) -> Prepared:
    """Reads the data, builds the vocabulary, fills the word table and makes the model.

    Args:
        settings: The run.
        data: Folder or file of the data; None for a reader that generates it.

    Raises:
        ConfigError: the data or the word vectors that the settings need are missing.
        DataError: the data cannot be trained on.
    """
    require_trainable(settings, data)
    reader = open_reader(settings.reader.name, data or "", **settings.reader.options)
    names = choose_splits(reader, settings.data)
    word_ids, notes = WordIds(), dict[str, str]()
    # The pipeline of the model does not exist yet; until then this one truncates and counts.
    pipeline = TextPipeline(
        WordTokenizer(settings.text.rules),
        Vocabulary.build({}),
        Characters(""),
        max_length=settings.text.max_length,
    )
    train, labels = _read_train(reader, names.train, word_ids, pipeline.words)
    train = _choose_rows(train, settings, notes)
    if not len(train):
        raise DataError("data.drop_length leaves no training row; give a larger one", reader.place)
    if names.dev is None:
        train, dev = _hold_out(train, labels, settings, notes)
    else:
        dev = _read_scored(reader, names.dev, word_ids, pipeline.words, labels)
    tests = {
        name: _read_scored(reader, name, word_ids, pipeline.words, labels) for name in names.tests
    }
    _check_scored(reader, train, {names.dev or "dev": dev, **tests})
    if reader.skipped:
        notes["rows left out"] = ", ".join(f"{n:,} {why}" for why, n in reader.skipped.items())
    if pipeline.cut.sentences:
        notes["maximum length"] = str(pipeline.cut)
    encoder = build_encoder(
        settings.model,
        settings.vocabulary,
        settings.vectors,
        settings.training.seed,
        word_ids.counts(train.tokens),
        notes,
    )
    model: Classifier = (PairClassifier if reader.is_pair else TextClassifier)(encoder, labels)
    table, ends = model.text.table(), settings.text.sentence_ends
    # In the order of the splits: the first to use a word adds it to the table.
    ready = [split.with_table(table, word_ids, ends) for split in (train, dev, *tests.values())]
    return Prepared(
        model, table, ready[0], ready[1], dict(zip(tests, ready[2:], strict=True)), notes
    )


def _read_train(
    reader: Reader, name: str, word_ids: WordIds, split_words: SplitWords
) -> tuple[Split, tuple[str, ...]]:
    """Returns the training rows, and the labels in the order of their ids."""
    seen: dict[str, int] = {label: at for at, label in enumerate(reader.labels or ())}

    def label_id(label: str | None) -> int:
        if label is None:
            raise DataError("a training row has no label", reader.place)
        return seen.setdefault(label, len(seen))

    train = read_split(reader.read(name), word_ids, split_words, label_id)
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
    order = {seen[label]: at for at, label in enumerate(labels)}
    train.labels = np.array([order[label] for label in train.labels], dtype=np.int64)
    return train, labels


def _choose_rows(train: Split, settings: RunSettings, notes: dict[str, str]) -> Split:
    """Returns the training rows that `data.train_rows` and `data.drop_length` leave."""
    rows, wanted, limit = range(len(train)), settings.data.train_rows, settings.data.drop_length
    kept = list(rows)
    if wanted is not None and wanted < len(rows):
        kept = sorted(seeded_order(len(rows), settings.training.seed)[:wanted].tolist())
        notes["training rows"] = f"{len(kept):,} of {len(train):,}, chosen by seed"
    if limit is not None:
        ends = END_TOKENS if settings.data.drop_counts_ends else 0
        longest = train.lengths.max(axis=1) + ends  # (rows,)
        short = [row for row in kept if longest[row] < limit]
        counting = ", begin and end counted" if ends else ""
        notes["long training rows"] = (
            f"{len(kept) - len(short):,} left out ({limit} tokens or more{counting})"
        )
        kept = short
    return train if len(kept) == len(train) else train.take(kept)


def _hold_out(
    train: Split, labels: tuple[str, ...], settings: RunSettings, notes: dict[str, str]
) -> tuple[Split, Split]:
    """Returns the training rows without a share of them, and that share as the dev set."""
    names = [labels[label] for label in train.labels]
    held = stratified_share(names, settings.data.dev_share or 0.0, settings.training.seed)
    notes["dev set"] = f"{len(held):,} rows held out of the training set"
    return train.take(np.setdiff1d(np.arange(len(train)), held)), train.take(held)


def _read_scored(
    reader: Reader,
    name: str,
    word_ids: WordIds,
    split_words: SplitWords,
    labels: tuple[str, ...],
) -> Split:
    """Returns a split whose labels must be among those of the training rows."""

    def label_id(label: str | None) -> int:
        if label is not None and label not in labels:
            raise DataError(
                f"the label {label!r} appears in {name!r} but in no training row; "
                f"training has {', '.join(labels)}",
                reader.place,
            )
        return -1 if label is None else labels.index(label)

    return read_split(reader.read(name), word_ids, split_words, label_id)


def _check_scored(reader: Reader, train: Split, scored: dict[str, Split]) -> None:
    """Raises DataError if the dev set, which comes first, lacks labels, or if sides differ."""
    name, dev = next(iter(scored.items()))
    if not len(dev) or (dev.labels < 0).any():
        problem = "has rows without a label" if len(dev) else "is empty"
        raise DataError(
            f"the dev set {name!r} {problem}, so the best model cannot be chosen on it; fix it, "
            "or take a share of the training rows: --set data.dev_share=0.1",
            reader.place,
        )
    for name, split in scored.items():
        if len(split) and split.sides != train.sides:
            raise DataError(
                f"{name!r} has {split.sides} sentence(s) per row, the training set {train.sides}; "
                "name the columns: --set reader.first=... --set reader.second=...",
                reader.place,
            )

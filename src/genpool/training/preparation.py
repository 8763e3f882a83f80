"""From a data folder and settings to a model and the splits that it is trained and scored on."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from genpool.data import open_reader
from genpool.data.reader import Reader
from genpool.data.splits import seeded_order, stratified_share
from genpool.encoder import ENCODERS
from genpool.errors import DataError, counted
from genpool.model import Classifier, PairClassifier, SentenceEncoder, TextClassifier
from genpool.text import Characters, TextPipeline, Vocabulary, WordTable, WordTokenizer
from genpool.training.dataset import Split, WordIds, read_split, word_counts
from genpool.training.objective import OBJECTIVES, Objective
from genpool.training.settings import DataSettings, RunSettings, require_trainable
from genpool.training.start_model import DataWords, build_encoder, start_encoder

#: tokens that `text.sentence_ends` adds to a sentence
END_TOKENS = 2
#: the entry of results.json that is about the run, which no scored split can be named like
RUN_ENTRY = "run"
#: below this number of rows, new weights learn little: an encoder that was trained before helps
FEW_ROWS_FOR_SCRATCH = 3000
#: labels that a note names
MAX_NAMED_LABELS = 5


@dataclass
class Prepared:
    """A model with initial weights, and everything it is trained and scored on."""

    model: Classifier
    table: WordTable  # the words of all splits
    train: Split
    dev: Split  # that the best model is chosen on
    tests: dict[str, Split]  # scored once, at the end; without labels they get predictions only
    notes: dict[str, str]  # for people: rows left out, coverage of vectors
    objective: Objective
    words: DataWords | None = None  # those of the data in the start model; None for new weights
    columns: dict[str, str] = field(default_factory=dict)  # of a table, by their use

    def complete_model(self) -> Classifier:
        """Returns the model with all words of its start model; without one, the model itself."""
        return self.model if self.words is None else self.words.complete(self.model)

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Loads the weights of a complete model."""
        self.model.load_state_dict(weights if self.words is None else self.words.select(weights))

    def fingerprint(self) -> int:
        """Returns a checksum of the vocabulary, the training rows and the dev rows."""
        value = zlib.crc32("\n".join(self.model.text.vocabulary.words).encode())
        for split in (self.train, self.dev):
            arrays = (split.tokens, split.starts, split.labels, split.scores, split.annotations)
            for values in arrays:
                value = zlib.crc32(b"" if values is None else values.tobytes(), value)
        return value


def choose_splits(
    reader: Reader, settings: DataSettings
) -> tuple[str, str | None, list[str], float]:
    """Returns the splits to train on, to select on and to score, and the share of a held-out dev.

    Dev is None if it is a share of the training rows.
    """
    names = reader.splits()
    # A single table is the training set, of which a share can be the dev set.
    train = "all" if names == ["all"] else "train"
    if train not in names:
        found = ", ".join(names)
        raise DataError(
            f"no training set: expected a split named 'train', found {found}", reader.place
        )
    reader.columns(train)  # a wrong column is told before anything else
    dev = settings.dev or next((name for name in ("dev", "dev_matched") if name in names), None)
    dev_share = settings.dev_share
    if dev_share is None and dev is None:
        dev_share = settings.missing_dev_share
    if dev_share is not None:
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
    tests = list(settings.test) or [name for name in names if name not in (train, dev)]
    if RUN_ENTRY in tests:
        raise DataError(f"no split to score may be named {RUN_ENTRY!r}; rename it", reader.place)
    if "dev" in tests:  # in results.json that is the name of what the model is selected on
        chosen = f"data.dev is {dev!r}" if dev else f"data.dev_share is {dev_share}"
        raise DataError(
            f"{chosen}, and the data has a split named 'dev': choose one. Remove that setting to "
            "select on the split 'dev', or name the splits to score without it: "
            "--set data.test=['test']",
            reader.place,
        )
    for name in [dev, *tests] if dev else tests:
        reader.columns(name)
    return train, dev, tests, dev_share or 0.0


def prepare(
    settings: RunSettings, data: str | Path | Reader | None, start: SentenceEncoder | None = None
) -> Prepared:
    """Reads the data, builds the vocabulary, fills the word table and makes the model.

    `start` is the model to start from.
    """
    require_trainable(settings, data)
    name, options = settings.reader.name, settings.reader.options
    reader = data if isinstance(data, Reader) else open_reader(name, data or "", **options)
    reader.annotator = ENCODERS[settings.encoder.name].annotator_class
    train_name, dev_name, test_names, dev_share = choose_splits(reader, settings.data)
    word_ids, notes = WordIds(), dict[str, str]()
    # The pipeline of the model does not exist yet; until then this one truncates and counts.
    new = WordTokenizer(settings.text.rules, settings.text.folding)
    tokenizer, limit = start.text.tokenizer if start else new, settings.text.max_length
    pipeline = TextPipeline(tokenizer, Vocabulary.build({}), Characters(""), max_length=limit)

    train = read_split(reader.read(train_name), word_ids, pipeline.words)
    if not len(train):
        problem = "the training set is empty; expected at least one row"
        raise DataError(problem, reader.place)
    objective = OBJECTIVES[settings.data.task].from_train(train, reader)
    objective.set_targets(train)

    def read(name: str) -> Split:
        split = read_split(reader.read(name), word_ids, pipeline.words)
        objective.set_targets(split, name, reader.place)
        return split

    train = _choose_rows(train, settings, notes)
    if not len(train):
        raise DataError("data.drop_length leaves no training row; give a larger one", reader.place)
    if dev_name is None:
        names = [objective.labels[label] for label in train.labels]
        held = stratified_share(names, dev_share, settings.training.seed)
        notes["dev set"] = f"{len(held):,} rows held out of the training set"
        train, dev = train.take(np.setdiff1d(np.arange(len(train)), held)), train.take(held)
    else:
        dev = read(dev_name)
    tests = {name: read(name) for name in test_names}
    _check_scored(reader, train, {dev_name or "dev": dev, **tests})
    notes |= data_notes(train, objective.labels, start is None)
    if reader.skipped:
        notes["rows left out"] = ", ".join(f"{n:,} {why}" for why, n in reader.skipped.items())
    if pipeline.cut:
        notes["maximum length"] = str(pipeline.cut)

    counts, words = word_counts(word_ids, train.tokens), None
    if start is None:
        encoder = build_encoder(settings, counts, notes)
    else:
        encoder, words = start_encoder(start, settings, word_ids, counts, notes)
        torch.manual_seed(settings.training.seed)  # of the classifier on top, which comes next
    cls: type[Classifier] = PairClassifier if reader.is_pair else TextClassifier
    model = cls(encoder, objective.labels, settings.classifier)
    table = model.text.table()
    # In the order of the splits: the first to use a word adds it to the table.
    train, dev, *others = (
        split.with_table(table, word_ids, model.text) for split in (train, dev, *tests.values())
    )
    tests = dict(zip(tests, others, strict=True))
    if model.text.annotator is not None:
        notes[model.text.annotator.name] = model.text.annotator.report()
        model.text.annotator.counts.clear()
    columns = reader.columns(train_name)
    return Prepared(model, table, train, dev, tests, notes, objective, words, columns)


def _choose_rows(train: Split, settings: RunSettings, notes: dict[str, str]) -> Split:
    """Returns the training rows that `data.train_rows` and `data.drop_length` leave."""
    kept, wanted = np.arange(len(train)), settings.data.train_rows
    if wanted is not None and wanted < len(train):
        kept = np.sort(seeded_order(len(train), settings.training.seed)[:wanted])
        notes["training rows"] = f"{len(kept):,} of {len(train):,}, chosen by seed"
    if (limit := settings.data.drop_length) is not None:
        ends = END_TOKENS if settings.data.drop_counts_ends else 0
        short = kept[train.lengths.max(axis=1)[kept] + ends < limit]
        rule = f"{limit} tokens or more{', begin and end counted' if ends else ''}"
        notes["long training rows"] = f"{len(kept) - len(short):,} left out ({rule})"
        kept = short
    return train if len(kept) == len(train) else train.take(kept)


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
                f"{name!r} has {counted(split.sides, 'sentence')} per row, the training set "
                f"{train.sides}; name the columns: --first NAME --second NAME",
                reader.place,
            )


def data_notes(train: Split, labels: tuple[str, ...], from_scratch: bool) -> dict[str, str]:
    """Returns notes on labels with a single row, rows that contradict each other, and few rows."""
    notes = {}
    counts = Counter(train.labels.tolist())
    single = [label for number, label in enumerate(labels) if counts[number] == 1]
    if single:
        named = ", ".join(map(repr, single[:MAX_NAMED_LABELS]))
        dots = ", ..." if len(single) > MAX_NAMED_LABELS else ""
        notes["labels with one row"] = f"{named}{dots}: too few to learn, and none is held out"
    labels_of: dict[tuple[bytes, ...], Counter[int]] = defaultdict(Counter)  # by text
    for row, label in enumerate(train.labels.tolist()):
        sides = range(row * train.sides, (row + 1) * train.sides)
        labels_of[tuple(train.sentence(side).tobytes() for side in sides)][label] += 1
    several = [counts for counts in labels_of.values() if len(counts) > 1]
    if several:
        rows = sum(counts.total() for counts in several)
        notes["duplicate texts"] = f"{len(several):,} with different labels ({rows:,} rows)"
    if from_scratch and len(train) < FEW_ROWS_FOR_SCRATCH:
        notes["warning"] = (
            f"{len(train):,} training rows are few for new weights; start from a model that knows "
            "words already: --start embedded (recipes texts and pairs)"
        )
    return notes

"""The tasks of a reproduction at each scale, and the data sets that it makes for itself.

paper   the official data sets in the paper's settings: days on a GPU
small   smaller models on part of the data: minutes a cell on one core
tiny    the corpus that genpool generates: seconds a cell, for tests and for a first look
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from genpool.data import TableReader
from genpool.data.rules.generate import generate
from genpool.data.splits import seeded_order
from genpool.disk.atomic import atomic_file
from genpool.text import WordTokenizer


@dataclass(frozen=True)
class Task:
    """A data set and the settings in which all systems are trained on it.

    `needs` are files and folders below --data. The first of them is trained on, unless `prepare`
    makes the data from the folder --data, in a folder of the reproduction.
    """

    title: str  # what the report calls the data
    recipe: str
    overrides: tuple[str, ...] = ()  # settings that hold for all systems
    needs: tuple[str, ...] = ()
    prepare: Callable[[Path, Path], None] | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: {"test": "test"})  # by column


@dataclass(frozen=True)
class Scale:
    """The tasks of a scale, and what is tried on their dev sets.

    The learning rates are tried on SNLI before any comparison, for all systems and tasks; without
    any, the recipes' own are used.
    """

    tasks: dict[str, Task]
    width: int = 0  # of one direction of the encoders; at `--scale paper` each has its own
    vectors: str | None = None  # word vectors below --data, if the recipes need any
    learning_rates: tuple[str, ...] = ()
    weights: tuple[str, ...] = ("1", "1e-1", "1e-2", "1e-3", "1e-4")  # of a penalty
    seeds: int = 5  # of the rows whose spread is shown


#: rows of MultiNLI dev matched that are dev set and in-domain test set; the rest is trained on
HELD_OUT = 1000
#: rules that can be told from the words of the two sentences
TEXT_RULES = ("negation", "passive", "number")
# Real text is tokenized once, here: in every cell again, it took up to a sixth of the cell's time.


def mixed_nli(data: Path, folder: Path) -> None:
    """Writes train, dev, in and cross from SNLI's training pairs and MultiNLI's dev sets.

    The rows of dev matched are shuffled by a fixed seed: the last 1,000 are the in-domain test
    set, the 1,000 before them the dev set, all others are trained on beside SNLI's pairs.
    """
    snli = _pairs(data / "snli" / "train.tsv.xz")
    matched = _pairs(data / "mnli" / "dev_matched.tsv.xz")
    shuffled = [matched[row] for row in seeded_order(len(matched), seed=0)]
    header = ("label", "premise", "hypothesis")
    _write(folder / "train.tsv", header, [*snli, *shuffled[: -2 * HELD_OUT]])
    _write(folder / "dev.tsv", header, shuffled[-2 * HELD_OUT : -HELD_OUT])
    _write(folder / "in.tsv", header, shuffled[-HELD_OUT:])
    _write(folder / "cross.tsv", header, _pairs(data / "mnli" / "dev_mismatched.tsv.xz"))


def tokenized_texts(source: Path, folder: Path, train_rows: int | None = None) -> None:
    """Writes train, dev and test of single texts; of train, a number of rows drawn by a seed."""
    reader = TableReader(source)
    for split in ("train", "dev", "test"):
        rows = [(str(example.label), example.first) for example in reader.read(split)]
        if split == "train" and train_rows is not None:
            drawn = sorted(seeded_order(len(rows), seed=0)[:train_rows].tolist())
            rows = [rows[row] for row in drawn]
        _write(folder / f"{split}.tsv", ("label", "text"), _tokenized(rows))


def generated_texts(folder: Path, seed: int) -> None:
    """Writes train, dev and test tables of single texts, whose label is the rule behind them."""
    for split, rows in (("train", 1500), ("dev", 300), ("test", 300)):
        pairs = [pair for pair in generate(rows, seed) if pair.rule in TEXT_RULES]
        seed += 1
        texts = [(pair.rule, f"{pair.premise} {pair.hypothesis}") for pair in pairs]
        _write(folder / f"{split}.tsv", ("label", "text"), texts)


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


_NO_PENALTY = ("penalty.name=none",)
_YELP_FILE = "yelp_academic_dataset_review.json"
_PAPER = Scale(
    {
        "snli": Task("SNLI", "snli", _NO_PENALTY, ("snli_1.0",)),
        # The labels of MultiNLI's test sets are not public: the dev sets are scored, and the test
        # sets get submission files.
        "multinli": Task(
            "MultiNLI",
            "multinli",
            _NO_PENALTY,
            ("multinli_1.0",),
            splits={"in": "dev_matched", "cross": "dev_mismatched"},
        ),
        "yelp": Task("Yelp", "yelp", _NO_PENALTY, (_YELP_FILE,)),
        "age": Task("Age", "age", _NO_PENALTY, ("pan16",)),
    },
    vectors="glove.840B.300d.zip",
)

_SMALL_WIDTH = 64
_SMALL_SIZES = (
    "embedding.character_maps=20",
    f"encoder.hidden_dim={_SMALL_WIDTH}",
    f"pooling.hidden_dim={_SMALL_WIDTH}",
    "pooling.initial_std=0.1",
    f"classifier.hidden_dim={2 * _SMALL_WIDTH}",
    # In two epochs dev accuracy hardly ever falls, so that the paper's schedule would never lower
    # the rate: it falls to zero instead, and every system ends at its best.
    "training.epochs=2",
    "training.schedule=linear",
)
# Figure 2 shows dev accuracy twice an epoch, which has 1,561 steps (1,683 with MultiNLI).
_SMALL_NLI = (*_SMALL_SIZES, "encoder.layers=2", "training.evaluate_every=781")
# Batches as on SNLI, where the learning rate is chosen; those of the recipes are half as large.
_SMALL_TEXTS = (*_SMALL_SIZES, "training.batch_size=64", "reader.tokenized=true")
_STARS_ROWS = 40_000
_SMALL = Scale(
    {
        "snli": Task("SNLI, 99,890 training pairs", "snli-small", _SMALL_NLI, ("snli",)),
        "multinli": Task(
            "SNLI's training pairs and 7,815 rows of MultiNLI dev matched",
            "snli-small",
            (*_SMALL_NLI, 'data.test=["in","cross"]'),
            ("snli", "mnli"),
            mixed_nli,
            {"in": "in", "cross": "cross"},
        ),
        "yelp": Task(
            "stars of clothing reviews, 40,000 training rows",
            "reviews-stars",
            (*_SMALL_TEXTS, f"data.train_rows={_STARS_ROWS}", "text.max_length=80"),
            ("reviews-stars",),
            lambda data, folder: tokenized_texts(data / "reviews-stars", folder, _STARS_ROWS),
        ),
        "age": Task(
            "age of bloggers, three ranges, 68,485 training rows",
            "reviews-age",
            (
                *_SMALL_TEXTS,
                'reader.labels=["13-17","23-27","33-48"]',
                "text.max_length=50",
                "vocabulary.minimum_count=3",
            ),
            ("blogs-age",),
            lambda data, folder: tokenized_texts(data / "blogs-age", folder),
        ),
    },
    _SMALL_WIDTH,
    "vectors/glove.840B.300d.subset.txt.xz",
    learning_rates=("0.001", "0.002", "0.004"),
)

_TINY_SIZES = (
    "embedding.word_dim=8",
    "embedding.character_maps=2",
    "encoder.hidden_dim=8",
    "pooling.hidden_dim=8",
    "pooling.initial_std=0.1",
    "classifier.hidden_dim=8",
    "training.epochs=2",
    "training.learning_rate=0.01",
)
_TINY_PAIRS = (*_TINY_SIZES, "reader.sizes=[300,60,60]")
_TINY_TEXTS = (*_TINY_SIZES, "embedding.frozen=false", "vocabulary.minimum_count=1")
_TINY = Scale(
    {
        "snli": Task("pairs generated by rules", "rules", _TINY_PAIRS),
        "multinli": Task(
            "pairs generated by rules, another seed",
            "rules",
            (*_TINY_PAIRS, "reader.seed=100"),
            splits={"in": "test", "cross": "test"},
        ),
        "yelp": Task(
            "the rule of a generated pair",
            "texts-scratch",
            _TINY_TEXTS,
            prepare=lambda _, folder: generated_texts(folder, seed=10),
        ),
        "age": Task(
            "the rule of a generated pair, another seed",
            "texts-scratch",
            _TINY_TEXTS,
            prepare=lambda _, folder: generated_texts(folder, seed=20),
        ),
    },
    width=8,
    weights=("1", "1e-2"),
    seeds=2,
)

SCALES: dict[str, Scale] = {"paper": _PAPER, "small": _SMALL, "tiny": _TINY}

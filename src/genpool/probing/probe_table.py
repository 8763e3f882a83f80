"""Probes on tables: what the command does, callable from Python."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from genpool.data.reader import SCORED_SPLITS, Example, Reader
from genpool.data.splits import stratified_share
from genpool.disk.atomic import atomic_file
from genpool.errors import DataError, InputError
from genpool.evaluation.predictions import Predictions, write_predictions
from genpool.probing.comparison import COMPARED_POOLINGS, compare_poolings
from genpool.probing.estimator import AttentiveProbe
from genpool.probing.token_encoders import EMBEDDED, open_token_encoder
from genpool.probing.token_states import open_state_cache

ALL = "all"
#: the share of the rows that is scored where a table has no test rows
TEST_SHARE = 0.2
REPORT, REPORT_JSON, PREDICTIONS = "report.md", "report.json", "predictions"
BYTES_PER_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class ProbeOptions:
    """The options of `genpool probe`: None is the default of `AttentiveProbe`, of the user's cache,
    and for the encoder the embedded one, or that of the probe that is used."""

    encoder: str | None = None
    poolings: tuple[str, ...] = (ALL,)
    heads: int | None = None
    layers: str = "last"
    cache: Path | None = None
    seed: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The poolings, each once."""
        names = [
            name
            for entry in self.poolings
            for name in (COMPARED_POOLINGS if entry == ALL else (entry,))
        ]
        return tuple(dict.fromkeys(names))

    @property
    def chosen_layers(self) -> str | list[int]:
        """The layers as `AttentiveProbe` takes them."""
        if self.layers in ("last", "all"):
            return self.layers
        try:
            return [int(number) for number in self.layers.split(",")]
        except ValueError:
            raise InputError(
                f"--layers is {self.layers!r}; expected last, all, or numbers such as 0,3,6."
            ) from None


@dataclass(frozen=True)
class Rows:
    """Texts with their labels and ids."""

    texts: list[str]
    labels: list[str]
    ids: list[str]

    def select(self, positions: np.ndarray[Any, np.dtype[np.int64]]) -> Rows:
        """Returns some of the rows."""
        columns = (self.texts, self.labels, self.ids)
        return Rows(*([column[position] for position in positions] for column in columns))


def default_cache() -> Path:
    """Returns the folder of cached states: GENPOOL_CACHE, else genpool in the user's cache."""
    folder = os.environ.get("GENPOOL_CACHE")
    if folder:
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "genpool" / "token-states"


def probe_table(reader: Reader, options: ProbeOptions, out: Path | None = None) -> str:
    """Compares poolings on a data set; returns the report as Markdown.

    Of a data set with a split "train" the test or dev split is scored, else a fifth of the rows.
    The report, the predictions and the probes are written to the folder `out`.
    """
    train, test, held_out = read_rows(reader, options.seed)
    encoder = open_token_encoder(options.encoder or EMBEDDED, options.chosen_layers)
    cache = options.cache or default_cache()
    more = {} if options.heads is None else {"heads": options.heads}
    report, probes = compare_poolings(
        (train.texts, train.labels),
        (test.texts, test.labels),
        options.names,
        encoder=encoder,
        cache=cache,
        seed=options.seed,
        show_progress_bar=True,
        **more,
    )
    stored = open_state_cache(cache, encoder)
    lines = [
        f"# Poolings on the frozen token states of {encoder.reference}",
        "" if held_out is None else held_out,
        report.to_markdown(),
        f"Token states: {stored.size_bytes / BYTES_PER_MEGABYTE:,.0f} MB in {stored.folder}",
    ]
    text = "\n\n".join(line.strip("\n") for line in lines if line) + "\n"
    if out is None:
        return text
    (out / PREDICTIONS).mkdir(parents=True, exist_ok=True)
    for name, probe in probes.items():
        probe.save_pretrained(out / name)
    for result in report.results:
        predictions = _predictions(
            test.ids, list(test.labels), result.accuracy.labels, result.probabilities
        )
        write_predictions(out / PREDICTIONS / f"{result.pooling}.tsv", predictions)
    for name, content in (
        (REPORT, text),
        (REPORT_JSON, json.dumps(report.to_dict(), indent=2) + "\n"),
    ):
        with atomic_file(out / name) as temporary:
            temporary.write_text(content, encoding="utf-8", newline="\n")
    return text


def predict_with_probe(folder: Path, reader: Reader, output: Path, options: ProbeOptions) -> int:
    """Writes what a saved probe predicts for the rows of a table to a .tsv; returns their number.

    Labels, if there are any, are kept as gold labels. Of the options, `encoder` and `cache` count.
    """
    probe = AttentiveProbe.from_pretrained(folder, options.encoder)
    probe.set_params(show_progress_bar=True, cache=options.cache)
    examples = list(reader.read(reader.choose_split(None, SCORED_SPLITS)))
    _require_texts(examples, reader)
    ids = [example.id or str(row) for row, example in enumerate(examples)]
    labels = tuple(str(label) for label in probe.classes_)
    probabilities = probe.predict_proba([example.first for example in examples])
    predictions = _predictions(ids, [example.label for example in examples], labels, probabilities)
    write_predictions(output, predictions)
    return len(examples)


def _predictions(
    ids: list[str], gold: list[str | None], labels: tuple[str, ...], probabilities: Any
) -> Predictions:
    predicted = tuple(labels[index] for index in probabilities.argmax(axis=1))
    values = tuple(tuple(float(value) for value in row) for row in probabilities)
    return Predictions(tuple(ids), tuple(gold), predicted, labels, values)


def read_rows(reader: Reader, seed: int) -> tuple[Rows, Rows, str | None]:
    """Returns training rows, test rows, and a sentence on how they were held out, or None."""
    splits = reader.splits()
    scored = [split for split in SCORED_SPLITS if split in splits]
    if "train" in splits and scored:
        return _rows(reader, "train"), _rows(reader, scored[0]), None
    rows = _rows(reader, reader.choose_split(None, ("train",)))
    held_out = stratified_share(rows.labels, TEST_SHARE, seed)  # (test rows,)
    rest = np.setdiff1d(np.arange(len(rows.texts)), held_out)
    note = (
        f"There is no test table: {len(held_out):,} of {len(rows.texts):,} rows were held out and "
        f"scored (drawn with seed {seed})."
    )
    return rows.select(rest), rows.select(held_out), note


def _rows(reader: Reader, split: str) -> Rows:
    examples = list(reader.read(split))
    _require_texts(examples, reader)
    labels = [example.label for example in examples if example.label is not None]
    if len(labels) < len(examples):
        raise DataError(
            f"{split!r} has rows without a label; expected one in every row. Name the column: "
            "label= (command line: --label)",
            reader.place,
        )
    ids = [example.id or str(row) for row, example in enumerate(examples)]
    return Rows([example.first for example in examples], labels, ids)


def _require_texts(examples: list[Example], reader: Reader) -> None:
    if any(example.second is not None for example in examples):
        raise DataError(
            "rows have two sentences; a probe reads single texts. Name the column of the text: "
            "first= (command line: --first)",
            reader.place,
        )

"""Probes on tables: what the command does, callable from Python."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
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
        ([row.first for row in train], [row.label for row in train]),
        ([row.first for row in test], [row.label for row in test]),
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
        predictions = _predictions(test, result.accuracy.labels, result.probabilities)
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
    rows = _texts(reader, reader.choose_split(None, SCORED_SPLITS))
    labels = tuple(str(label) for label in probe.classes_)
    probabilities = probe.predict_proba([row.first for row in rows])
    predictions = _predictions(rows, labels, probabilities)
    write_predictions(output, predictions)
    return len(rows)


def _predictions(rows: list[Example], labels: tuple[str, ...], probabilities: Any) -> Predictions:
    ids, gold = tuple(str(row.id) for row in rows), tuple(row.label for row in rows)
    predicted = tuple(labels[index] for index in probabilities.argmax(axis=1))
    return Predictions(ids, gold, predicted, labels, tuple(map(tuple, probabilities.tolist())))


def read_rows(reader: Reader, seed: int) -> tuple[list[Example], list[Example], str | None]:
    """Returns training rows, test rows, and a sentence on how they were held out, or None."""
    splits = reader.splits()
    scored = [split for split in SCORED_SPLITS if split in splits]
    if "train" in splits and scored:
        return _labelled(reader, "train"), _labelled(reader, scored[0]), None
    rows = _labelled(reader, reader.choose_split(None, ("train",)))
    held_out = stratified_share([str(row.label) for row in rows], TEST_SHARE, seed)  # (test rows,)
    rest = np.setdiff1d(np.arange(len(rows)), held_out)
    note = (
        f"There is no test table: {len(held_out):,} of {len(rows):,} rows were held out and "
        f"scored (drawn with seed {seed})."
    )
    return [rows[row] for row in rest], [rows[row] for row in held_out], note


def _labelled(reader: Reader, split: str) -> list[Example]:
    rows = _texts(reader, split)
    if any(row.label is None for row in rows):
        raise DataError(
            f"{split!r} has rows without a label; expected one in every row. Name the column: "
            "label= (command line: --label)",
            reader.place,
        )
    return rows


def _texts(reader: Reader, split: str) -> list[Example]:
    """Returns the rows of a split, each with an id: its own, or its number."""
    rows = [replace(row, id=row.id or str(at)) for at, row in enumerate(reader.read(split))]
    if any(row.second is not None for row in rows):
        raise DataError(
            "rows have two sentences; a probe reads single texts. Name the column of the text: "
            "first= (command line: --first)",
            reader.place,
        )
    return rows

"""Poolings compared on the token states of one frozen encoder: from Python, and on tables."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.data.reader import SCORED_SPLITS, Example, Reader
from genpool.data.splits import stratified_share
from genpool.disk.atomic import write_text_file
from genpool.disk.files import markdown_table, percent, percent_interval
from genpool.errors import DataError, InputError
from genpool.evaluation.accuracy import AccuracyReport, Comparison, accuracy_report, compare_correct
from genpool.evaluation.predictions import Predictions, write_predictions
from genpool.inference.explanation import pooling_weights
from genpool.integrations.probing.estimator import AttentiveProbe
from genpool.integrations.probing.token_states import TokenStates, open_state_cache
from genpool.text.validation import read_labels, read_texts

#: what `--pooling all` compares, the one first that the others are tested against
ALL, COMPARED_POOLINGS = "all", ("mean", "max", "scalar", "generalized")
#: texts that heads are described on; their weights have one value per token, head and dimension
MAX_TEXTS = 200
#: a token is listed for a head if it occurs at least MIN_COUNT times, LISTED_TOKENS of them
MIN_COUNT, LISTED_TOKENS = 3, 8
#: the share of the rows that is scored where a table has no test rows
TEST_SHARE = 0.2


@dataclass(frozen=True)
class HeadWord:
    """A token in lower case, how often it occurs, and how much a head looks at it: twice the
    attention of mean pooling is a ratio of 2."""

    token: str
    ratio: float
    count: int


@dataclass(frozen=True)
class PoolingResult:
    """One pooling on the test texts.

    Attributes:
        pooling: its name.
        accuracy: accuracy with its interval, per class, and the confusion matrix.
        probabilities: (texts, labels).
        seconds: of the training, token states not included.
        heads: the tokens that each head looks at most; empty for poolings without weights.
    """

    pooling: str
    accuracy: AccuracyReport
    probabilities: NDArray[np.float64]
    seconds: float
    heads: list[list[HeadWord]]


@dataclass(frozen=True)
class PoolingComparison:
    """Poolings on the same texts, each compared with the first.

    Attributes:
        results: one for each pooling, in the order in which they were asked for.
        comparisons: each later pooling against the first, by its name.
        train_texts: the number of training texts.
    """

    results: tuple[PoolingResult, ...]
    comparisons: dict[str, Comparison]
    train_texts: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as lists, strings and numbers, ready for JSON."""
        return {
            "train_texts": self.train_texts,
            "test_texts": self.results[0].accuracy.total,
            "poolings": {
                result.pooling: {
                    name: asdict(result)[name] for name in ("accuracy", "seconds", "heads")
                }
                for result in self.results
            },
            "compared_with": self.results[0].pooling,
            "comparisons": {name: test.to_dict() for name, test in self.comparisons.items()},
        }

    def to_markdown(self) -> str:
        """Returns Markdown: a table of the poolings, and what their heads look at."""
        first = self.results[0]
        header = ["pooling", "accuracy", "95 % interval", f"minus {first.pooling}", "95 % interval"]
        header += [f"better than {first.pooling}: p", "McNemar: p", "seconds"]
        rows, heads = [], []
        for result in self.results:
            accuracy, test = result.accuracy, self.comparisons.get(result.pooling)
            row = [result.pooling, percent(accuracy.accuracy), percent_interval(accuracy.interval)]
            if test is not None:
                row += [f"{100 * test.difference:+.2f}", percent_interval(test.interval)]
                row += [f"{test.t_p_value:.2g}", f"{test.mcnemar_p_value:.2g}"]
            rows.append([*row, *[""] * (len(header) - 1 - len(row)), f"{result.seconds:.1f}"])
            if result.heads:
                title = f"What {result.pooling} pooling looks at (times the attention of the mean):"
                lines = [
                    f"- head {number}: "
                    + ", ".join(f"{word.token} {word.ratio:.1f}" for word in words)
                    for number, words in enumerate(result.heads, start=1)
                ]
                heads += [title, "\n".join(lines)]
        texts = f"{self.train_texts:,} training texts, {first.accuracy.total:,} test texts."
        return "\n\n".join([texts, markdown_table(header, rows), *heads]) + "\n"


def compare_poolings(
    train: tuple[Any, Any],
    test: tuple[Any, Any],
    poolings: Sequence[str] = COMPARED_POOLINGS,
    **options: Any,
) -> tuple[PoolingComparison, dict[str, AttentiveProbe]]:
    """Trains a probe for each pooling on the same texts, and compares them on the same test texts.

    Args:
        train: texts and labels to train on.
        test: texts and labels to score.
        poolings: names of `genpool.pooling.POOLINGS`; all others are compared with the first.
        **options: arguments of `AttentiveProbe`, such as encoder, heads, layers or cache.

    Returns:
        The report, and the trained probes by pooling.

    Raises:
        InputError: an argument is not possible, or a test label is not among those of training.

    Example:
        >>> report, probes = compare_poolings((texts, labels), (test_texts, test_labels))
        >>> print(report.to_markdown())
        >>> probes["generalized"].save_pretrained("my-probe")
    """
    if not poolings or len(set(poolings)) != len(poolings):
        raise InputError(f"poolings is {list(poolings)}; expected different names, one or more.")
    texts, test_texts = read_texts(train[0]), read_texts(test[0])
    labels = read_labels(train[1], len(texts), classes=2)
    gold = [str(label) for label in read_labels(test[1], len(test_texts))]
    first = AttentiveProbe(**options)
    options["encoder"] = first.token_encoder  # opened once
    probes = {name: AttentiveProbe(pooling=name, **options) for name in poolings}
    states, test_states = first.states(texts), first.states(test_texts)
    results, right = [], {}
    for name, probe in probes.items():
        start = time.perf_counter()
        probe.fit(states, labels)
        seconds = time.perf_counter() - start
        probabilities = probe.predict_proba(test_states)  # (texts, labels)
        names = [str(label) for label in probe.classes_]
        predicted = [names[index] for index in probabilities.argmax(axis=1)]
        heads = head_words(probe, test_texts, test_states) if probe.model_.is_trained else []
        report = accuracy_report(gold, predicted, names)
        right[name] = (np.array(predicted) == np.array(gold)).astype(np.float64)
        results.append(PoolingResult(name, report, probabilities, seconds, heads))
    compared = poolings[1:] if len(gold) > 1 else ()  # a paired test needs two texts
    comparisons = {name: compare_correct(right[name], right[poolings[0]]) for name in compared}
    return PoolingComparison(tuple(results), comparisons, len(texts)), probes


def head_words(
    probe: AttentiveProbe, texts: Sequence[str], states: TokenStates
) -> list[list[HeadWord]]:
    """Returns the tokens that each head of a probe looks at most, the most attended first."""
    model = probe.model_.eval()
    ratios: dict[str, list[NDArray[np.float32]]] = defaultdict(list)  # of all heads, by token
    for position, text in enumerate(texts[:MAX_TEXTS]):
        tokens = probe.token_encoder.tokens(text)
        rows, _ = states.batch(np.array([position]))  # (tokens, layers, dim)
        with torch.no_grad():
            weights = pooling_weights(model.pooling, model.standardized(rows))
        shares = weights.mean(dim=2).T.numpy() * len(tokens)  # (tokens, heads)
        for token, share in zip(tokens, shares, strict=True):
            ratios[token.text.lower()].append(share)
    frequent = {token: shares for token, shares in ratios.items() if len(shares) >= MIN_COUNT}
    means = [(token, np.mean(shares, axis=0), len(shares)) for token, shares in frequent.items()]
    heads = []
    for head in range(model.pooling.heads):
        words = [HeadWord(token, float(mean[head]), count) for token, mean, count in means]
        heads.append(sorted(words, key=lambda word: (-word.ratio, word.token))[:LISTED_TOKENS])
    return heads


# --- Tables: what the command does ---------------------------------------------------------------


def default_cache() -> Path:
    """Returns the folder of cached states: GENPOOL_CACHE, else genpool in the user's cache."""
    if folder := os.environ.get("GENPOOL_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "genpool" / "token-states"


def probe_table(
    reader: Reader, poolings: Sequence[str], out: Path | None = None, **options: Any
) -> str:
    """Compares poolings on a data set; returns the report as Markdown.

    Of a data set with a split "train" the test or dev split is scored, else a fifth of the rows.
    The report, the predictions and the probes are written to the folder `out`. "all" are all
    `COMPARED_POOLINGS`; `options` are arguments of `AttentiveProbe`.
    """
    listed = [COMPARED_POOLINGS if pooling == ALL else (pooling,) for pooling in poolings]
    train, test, note = read_rows(reader, options.get("seed", 0))
    options |= {"cache": options.get("cache") or default_cache(), "show_progress_bar": True}
    sides = [([row.first for row in rows], [row.label for row in rows]) for rows in (train, test)]
    names = tuple(dict.fromkeys(chain(*listed)))
    report, probes = compare_poolings(sides[0], sides[1], names, **options)
    encoder = probes[names[0]].token_encoder
    stored = open_state_cache(options["cache"], encoder)
    title = f"# Poolings on the frozen token states of {encoder.reference}"
    size = f"Token states: {stored.size_bytes / 1e6:,.0f} MB in {stored.folder}"
    parts = [part.strip("\n") for part in (title, note, report.to_markdown(), size) if part]
    text = "\n\n".join(parts) + "\n"
    if out is None:
        return text
    (out / "predictions").mkdir(parents=True, exist_ok=True)
    for name, probe in probes.items():
        probe.save_pretrained(out / name)
    for result in report.results:
        path = out / "predictions" / f"{result.pooling}.tsv"
        _write_predictions(path, test, result.accuracy.labels, result.probabilities)
    write_text_file(out / "report.md", text)
    write_text_file(out / "report.json", json.dumps(report.to_dict(), indent=2) + "\n")
    return text


def predict_with_probe(
    folder: Path, reader: Reader, output: Path, encoder: str | None, cache: Path | None
) -> int:
    """Writes the labels that a saved probe predicts for a table to a .tsv; returns their number."""
    probe = AttentiveProbe.from_pretrained(folder, encoder)
    probe.set_params(show_progress_bar=True, cache=cache)
    rows = _read_texts(reader, reader.choose_split(None, SCORED_SPLITS))
    labels = tuple(str(label) for label in probe.classes_)
    _write_predictions(output, rows, labels, probe.predict_proba([row.first for row in rows]))
    return len(rows)


def _write_predictions(
    path: Path, rows: list[Example], labels: tuple[str, ...], scores: NDArray[np.float64]
) -> None:
    """Writes a prediction file from probabilities (rows, labels)."""
    ids, gold = tuple(str(row.id) for row in rows), tuple(row.label for row in rows)
    predicted = tuple(labels[index] for index in scores.argmax(axis=1))
    probabilities = tuple(map(tuple, scores.tolist()))
    write_predictions(path, Predictions(ids, gold, predicted, labels, probabilities))


def read_rows(reader: Reader, seed: int) -> tuple[list[Example], list[Example], str]:
    """Returns training rows, test rows, and a sentence on how they were held out, if they were."""
    splits = reader.splits()
    scored = [split for split in SCORED_SPLITS if split in splits]
    if "train" in splits and scored:
        return _read_texts(reader, "train", True), _read_texts(reader, scored[0], True), ""
    rows = _read_texts(reader, reader.choose_split(None, ("train",)), True)
    held_out = stratified_share([str(row.label) for row in rows], TEST_SHARE, seed)  # (test rows,)
    rest = np.setdiff1d(np.arange(len(rows)), held_out)
    note = (
        f"There is no test table: {len(held_out):,} of {len(rows):,} rows were held out and "
        f"scored (drawn with seed {seed})."
    )
    return [rows[row] for row in rest], [rows[row] for row in held_out], note


def _read_texts(reader: Reader, split: str, labelled: bool = False) -> list[Example]:
    """Returns the rows of a split, each with an id: its own, or its number."""
    rows = [replace(row, id=row.id or str(at)) for at, row in enumerate(reader.read(split))]
    if any(row.second is not None for row in rows):
        raise DataError(
            "rows have two sentences; a probe reads single texts. Name the column of the text: "
            "first= (command line: --first)",
            reader.place,
        )
    if labelled and any(row.label is None for row in rows):
        raise DataError(
            f"{split!r} has rows without a label; expected one in every row. Name the column: "
            "label= (command line: --label)",
            reader.place,
        )
    return rows

"""Poolings compared on the token states of one frozen encoder."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.markdown import markdown_table, percent, percent_interval
from genpool.errors import InputError
from genpool.evaluation.accuracy import AccuracyReport, accuracy_report
from genpool.evaluation.significance import Comparison, compare_correct
from genpool.probing.estimator import AttentiveProbe
from genpool.probing.token_encoders import EMBEDDED, open_token_encoder
from genpool.probing.token_states import TokenStates
from genpool.text.validation import read_labels, read_texts

#: what `--pooling all` compares, the one first that the others are tested against
COMPARED_POOLINGS = ("mean", "max", "scalar", "generalized")
#: a paired test needs as many
MIN_COMPARED_TEXTS = 2
#: texts that heads are described on; their weights have one value per token, head and dimension
MAX_TEXTS = 200
#: a token is listed for a head if it occurs at least MIN_COUNT times, LISTED_TOKENS of them
MIN_COUNT, LISTED_TOKENS = 3, 8


@dataclass(frozen=True)
class HeadWord:
    """A token and how much a head looks at it.

    Attributes:
        token: the token, in lower case.
        ratio: the mean of its weights divided by the weight that it has in the mean of its text: 2
            is twice the attention of mean pooling.
        count: how often it occurs.
    """

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
                    "accuracy": result.accuracy.to_dict(),
                    "seconds": result.seconds,
                    "heads": [[asdict(word) for word in head] for head in result.heads],
                }
                for result in self.results
            },
            "compared_with": self.results[0].pooling,
            "comparisons": {name: test.to_dict() for name, test in self.comparisons.items()},
        }

    def to_markdown(self) -> str:
        """Returns Markdown: a table of the poolings, and what their heads look at."""
        first = self.results[0]
        name = first.pooling
        header = ["pooling", "accuracy", "95 % interval", f"minus {name}", "95 % interval"]
        header += [f"better than {name}: p", "McNemar: p", "seconds"]
        lines = [
            f"{self.train_texts:,} training texts, {first.accuracy.total:,} test texts.",
            markdown_table(header, [self._row(result) for result in self.results]),
        ]
        for result in self.results:
            heads = [
                f"- head {number}: " + ", ".join(f"{word.token} {word.ratio:.1f}" for word in words)
                for number, words in enumerate(result.heads, start=1)
            ]
            if heads:
                title = f"What {result.pooling} pooling looks at (times the attention of the mean):"
                lines += [title, "\n".join(heads)]
        return "\n\n".join(lines) + "\n"

    def _row(self, result: PoolingResult) -> list[str]:
        accuracy, test = result.accuracy, self.comparisons.get(result.pooling)
        row = [result.pooling, percent(accuracy.accuracy), percent_interval(accuracy.interval)]
        if test is None:
            return [*row, "", "", "", "", f"{result.seconds:.1f}"]
        row += [f"{100 * test.difference:+.2f}", percent_interval(test.interval)]
        row += [f"{test.t_p_value:.2g}", f"{test.mcnemar_p_value:.2g}"]
        return [*row, f"{result.seconds:.1f}"]


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
            Default: mean, max, scalar and generalized.
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
    encoder = open_token_encoder(options.pop("encoder", EMBEDDED), options.get("layers", "last"))
    probes = {name: AttentiveProbe(encoder, name, **options) for name in poolings}
    first = probes[poolings[0]]
    states, test_states = first.states(texts), first.states(test_texts)
    results: list[PoolingResult] = []
    right: dict[str, NDArray[np.float64]] = {}
    for name, probe in probes.items():
        start = time.perf_counter()
        probe.fit_states(states, labels)
        seconds = time.perf_counter() - start
        probabilities = probe.predict_proba_states(test_states)  # (texts, labels)
        names = [str(label) for label in probe.classes_]
        predicted = [names[index] for index in probabilities.argmax(axis=1)]
        heads = head_words(probe, test_texts, test_states) if probe.model_.is_trained else []
        report = accuracy_report(gold, predicted, names)
        right[name] = (np.array(predicted) == np.array(gold)).astype(np.float64)
        results.append(PoolingResult(name, report, probabilities, seconds, heads))
    compared = poolings[1:] if len(gold) >= MIN_COMPARED_TEXTS else ()
    comparisons = {name: compare_correct(right[name], right[poolings[0]]) for name in compared}
    return PoolingComparison(tuple(results), comparisons, len(texts)), probes


def head_words(
    probe: AttentiveProbe, texts: Sequence[str], states: TokenStates
) -> list[list[HeadWord]]:
    """Returns for each head of a probe the tokens that it looks at most in texts with these states,
    the most attended first."""
    ratios: dict[str, list[np.ndarray[tuple[int], np.dtype[np.float32]]]] = defaultdict(list)
    encoder = probe.token_encoder
    for position, text in enumerate(texts[:MAX_TEXTS]):
        tokens = encoder.tokens(text)
        shares = probe.token_weights(states, position) * len(tokens)  # (heads, tokens)
        for token, column in zip(tokens, shares.T, strict=True):
            ratios[token.text.lower()].append(column)  # (heads,)
    means = {
        token: (np.mean(columns, axis=0), len(columns))
        for token, columns in ratios.items()
        if len(columns) >= MIN_COUNT
    }
    words = [
        [HeadWord(token, float(mean[head]), count) for token, (mean, count) in means.items()]
        for head in range(probe.model_.pooling.heads)
    ]
    return [
        sorted(head, key=lambda word: (-word.ratio, word.token))[:LISTED_TOKENS] for head in words
    ]

"""The claims of the paper's section 5, each with what was measured and a verdict.

`BEYOND` has statements that the paper does not make, and that a reader of its tables asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genpool.reproduction.definitions import EARLIER, EXPERIMENTS
from genpool.reproduction.verdicts import (
    MISSING,
    OPEN,
    Answer,
    Answering,
    Results,
    attention_distance,
    better,
    better_than_all,
    several_heads,
    vector_against_scalar,
)


class Claim(NamedTuple):
    """A statement, the figures of the paper behind it, and how it is answered."""

    text: str
    paper: str
    answer: Answering


def answers(results: Results, claims: Sequence[Claim]) -> list[tuple[Claim, Answer]]:
    """Returns every claim with its answer; the generated corpus of the tiny scale decides none."""
    pairs = [(claim, claim.answer(results)) for claim in claims]
    if results.reproduction.scale != "tiny":
        return pairs
    return [
        (claim, answer if answer.verdict == MISSING else Answer(answer.measured, OPEN))
        for claim, answer in pairs
    ]


_TABLE1, _TABLE4 = EXPERIMENTS["table1"], EXPERIMENTS["table4"]
_GENERALIZED, _MAX = "BiLSTM generalized pooling", "BiLSTM max pooling"
_MEAN, _LAST = "BiLSTM mean pooling", "BiLSTM last pooling"
_BASELINES = (_MAX, _MEAN, _LAST)
_SHORTCUT = "Shortcut stacked BiLSTM"
_LIN_MAX, _LIN_CNN, _LIN_ATTENTION = (
    "BiLSTM max pooling (Lin et al.)",
    "CNN max pooling (Lin et al.)",
    "BiLSTM self-attention (Lin et al.)",
)
_LIN = (_LIN_MAX, _LIN_CNN, _LIN_ATTENTION)
_NO_PENALTY = "no penalty"
_PARAMETER, _ATTENTION, _EMBEDDING = (
    "penalty on parameter matrices",
    "penalty on attention matrices",
    "penalty on sentence embeddings",
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "SNLI: generalized pooling is better than max pooling, significantly",
        "86.6 against 85.3, p < 0.00001",
        better("table1", "SNLI", _GENERALIZED, _MAX),
    ),
    Claim(
        "SNLI: generalized pooling is better than mean and last pooling",
        "86.6 against 85.0 and 84.9",
        better("table1", "SNLI", _GENERALIZED, _MEAN, _LAST),
    ),
    Claim(
        "SNLI: max pooling is the best of the three simple poolings",
        "85.3 against 85.0 and 84.9",
        better("table1", "SNLI", _MAX, _MEAN, _LAST),
    ),
    Claim(
        "SNLI: generalized pooling is better than all earlier systems",
        "86.6 against 86.3 of ReSAN, the best of them",
        better_than_all(_TABLE1.row(_GENERALIZED), EARLIER, _TABLE1.columns[0]),
    ),
    Claim(
        "SNLI: generalized pooling without a penalty is better than all earlier systems",
        "86.4 against 86.3 of ReSAN",
        better_than_all(_TABLE4.row(_NO_PENALTY), EARLIER, _TABLE1.columns[0]),
    ),
    Claim(
        "MultiNLI: generalized pooling is better than the baselines, in domain",
        "73.8 against 73.6, 71.5 and 71.6",
        better("table2", "In", _GENERALIZED, *_BASELINES),
    ),
    Claim(
        "MultiNLI: generalized pooling is better than the baselines, across domains",
        "74.0 against 73.0, 71.6 and 71.9",
        better("table2", "Cross", _GENERALIZED, *_BASELINES),
    ),
    Claim(
        "MultiNLI: generalized pooling is better than the shortcut stacked BiLSTM across domains",
        "74.0 against 73.6",
        better("table2", "Cross", _GENERALIZED, _SHORTCUT),
    ),
    Claim(
        "Yelp and Age: Lin et al.'s self-attention is better than CNN and BiLSTM with max pooling",
        "64.21 against 62.05 and 61.99, 80.45 against 78.15 and 77.30",
        better("table3", ("Yelp", "Age"), _LIN_ATTENTION, _LIN_CNN, _LIN_MAX),
    ),
    Claim(
        "Yelp and Age: max pooling on this encoder is better than Lin et al.'s self-attention",
        "65.00 against 64.21, 82.30 against 80.45",
        better("table3", ("Yelp", "Age"), _MAX, _LIN_ATTENTION),
    ),
    Claim(
        "Yelp: mean pooling is the best of the three simple poolings",
        "65.30 against 65.00 and 64.95",
        better("table3", "Yelp", _MEAN, _MAX, _LAST),
    ),
    Claim(
        "Age: max pooling is the best of the three simple poolings",
        "82.30 against 81.78 and 81.10",
        better("table3", "Age", _MAX, _MEAN, _LAST),
    ),
    Claim(
        "Yelp: generalized pooling is better than the baselines, significantly",
        "66.55 against 65.30, p < 0.00001",
        better("table3", "Yelp", _GENERALIZED, *_BASELINES),
    ),
    Claim(
        "Age: generalized pooling is better than the baselines, significantly",
        "82.63 against 82.30, p < 0.00001",
        better("table3", "Age", _GENERALIZED, *_BASELINES),
    ),
    Claim(
        "Yelp and Age: generalized pooling is better than all earlier systems",
        "66.55 against 64.21, 82.63 against 80.45",
        better("table3", ("Yelp", "Age"), _GENERALIZED, *_LIN),
    ),
    Claim(
        "Figure 2: vector attention is better than scalar attention with every number of heads",
        "86.8 against 86.4 on the dev set, best of each",
        vector_against_scalar,
    ),
    Claim(
        "Figure 2: several heads are better than one, vector attention",
        "9 heads are best",
        several_heads("vector"),
    ),
    Claim(
        "Figure 2: several heads are better than one, scalar attention",
        "7 heads are best",
        several_heads("scalar"),
    ),
    Claim(
        "SNLI: the penalty on parameter matrices improves generalized pooling",
        "86.6 against 86.4",
        better("table4", "SNLI", _PARAMETER, _NO_PENALTY),
    ),
    Claim(
        "MultiNLI: the penalty on parameter matrices improves generalized pooling",
        "73.8 against 73.7, 74.0 against 73.4",
        better("table4", ("MultiNLI in", "MultiNLI cross"), _PARAMETER, _NO_PENALTY),
    ),
    Claim(
        "SNLI and MultiNLI: the penalty on parameter matrices is the best of the three",
        "86.6 against 86.2 and 86.1; 73.8 against 73.6 and 73.5, 74.0 against 73.8 and 73.6",
        better(
            "table4", ("SNLI", "MultiNLI in", "MultiNLI cross"), _PARAMETER, _ATTENTION, _EMBEDDING
        ),
    ),
    Claim(
        "Yelp: the penalty on parameter matrices is the best of the three, and improves",
        "66.55 against 65.25",
        better("table4", "Yelp", _PARAMETER, _NO_PENALTY, _ATTENTION, _EMBEDDING),
    ),
    Claim(
        "Age: the penalty on attention matrices is the best of the three, and improves",
        "82.63 against 82.18",
        better("table4", "Age", _ATTENTION, _NO_PENALTY, _PARAMETER, _EMBEDDING),
    ),
    Claim(
        "Figure 3: the penalty on attention matrices makes the heads look at different words",
        "a picture",
        attention_distance,
    ),
)

BEYOND: tuple[Claim, ...] = (
    Claim(
        "SNLI: generalized pooling is better than scalar self-attention on the same encoder",
        "only dev accuracies, in figure 2",
        better("table1", "SNLI", _GENERALIZED, "BiLSTM scalar self-attention"),
    ),
    Claim(
        "SNLI: generalized pooling is better than the shortcut stacked BiLSTM with max pooling",
        "only on MultiNLI",
        better("table1", "SNLI", _GENERALIZED, _SHORTCUT),
    ),
    Claim(
        "SNLI: on the shortcut stacked BiLSTM, generalized pooling is better than max pooling",
        "not compared",
        better("table1", "SNLI", f"{_SHORTCUT} generalized pooling", _SHORTCUT),
    ),
)

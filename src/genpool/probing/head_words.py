"""What the heads of a probe look at: the tokens with the largest weights over many texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from genpool.probing.estimator import AttentiveProbe
from genpool.probing.token_states import TokenStates

#: texts that are looked at; their weights have one value per token, head and dimension
MAX_TEXTS = 200
#: a token is listed if it occurs at least this number of times
MIN_COUNT = 3
#: tokens that are listed for each head
LISTED_TOKENS = 8


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


def head_words(
    probe: AttentiveProbe, texts: Sequence[str], states: TokenStates
) -> list[list[HeadWord]]:
    """Returns for each head the tokens that it looks at most.

    Args:
        probe: a trained probe.
        texts: the texts; the first MAX_TEXTS of them are used.
        states: their states.

    Returns:
        LISTED_TOKENS tokens per head, the most attended first.
    """
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
    heads = probe.model_.pooling.heads
    words = []
    for head in range(heads):
        ranked = sorted(means.items(), key=lambda item: (-item[1][0][head], item[0]))
        words.append([HeadWord(token, float(mean[head]), count) for token, (mean, count) in ranked])
    return [ranked[:LISTED_TOKENS] for ranked in words]

"""What a model looked at: the weight and the influence of every word of a sentence, or of a pair.

A weight is not an influence: a state that is small, or much like the others, changes little. The
influence of a word is how far a vector turns when its state is left out of the pooling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.inference import explanation_views
from genpool.pooling import Pooled, Pooling
from genpool.tensors.arrays import unit_rows
from genpool.tensors.packing import Packing
from genpool.text import Token

Floats = NDArray[np.float64]


class LeaveOneOut(NamedTuple):
    """The vectors of one sentence, and the same without each token: zeros if there is no other."""

    vector: Floats  # (output_dim,)
    heads: Floats  # (heads, dim)
    vector_without: Floats  # (tokens, output_dim)
    heads_without: Floats  # (heads, tokens, dim)


@dataclass(frozen=True)
class LabelExplanation:
    """The label that a classifier predicts, and the words that decide it.

    Attributes:
        labels: the names of the classes.
        probabilities: (labels,), in the order of `labels`; they sum to 1.
        influence: for each sentence, (tokens,): the probability of the predicted label minus its
            probability without the token. A positive word speaks for the label, a negative one
            against it.
    """

    labels: tuple[str, ...]
    probabilities: Floats
    influence: tuple[Floats, ...]

    @property
    def label(self) -> str:
        """The most probable label."""
        return self.labels[int(self.probabilities.argmax())]


@dataclass(frozen=True)
class Explanation:
    """How a sentence's vector was made, from `SentenceEncoder.explain`.

    `print(explanation)` shows a table, `to_html()` returns a page, and a notebook renders it.

    Attributes:
        sentence: the sentence, unchanged.
        tokens: its words with their offsets; begin and end tokens, if any, have offsets (-1, -1).
        weights: (heads, tokens, dim), the weight of each token in each dimension of each head; the
            last dimension is 1 for scalar attention. Over the tokens they sum to 1.
        vectors: the vectors of the sentence, and the same without each token.
        truncated: whether tokens beyond the maximum length of the model were left out.
        prediction: the label and what decides it, from `TextClassifier.explain`; else None.
        tree: the binary tree of the tokens, with brackets, where the encoder chose or read one
            (`Encoder.tree`); else None.

    Example:
        >>> explanation = model.explain("A man sleeps.")
        >>> top = explanation.vector_influence.argmax()
        >>> explanation.tokens[top].text
    """

    sentence: str
    tokens: list[Token]
    weights: NDArray[np.float32]
    vectors: LeaveOneOut = field(repr=False)
    truncated: bool = False
    prediction: LabelExplanation | None = None
    tree: str | None = None

    @property
    def sentences(self) -> tuple[Explanation, ...]:
        """This explanation alone; a `PairExplanation` has two."""
        return (self,)

    @cached_property
    def vector_influence(self) -> Floats:
        """(tokens,): degrees that the sentence vector turns when a token is left out."""
        return degrees_between(self.vectors.vector, self.vectors.vector_without)

    @cached_property
    def head_influence(self) -> Floats:
        """(heads, tokens): degrees that each head's vector turns when a token is left out."""
        return degrees_between(self.vectors.heads[:, None], self.vectors.heads_without)

    @property
    def token_weights(self) -> NDArray[np.float32]:
        """(heads, tokens): the mean of the weights over the dimensions; every row sums to 1."""
        means: NDArray[np.float32] = self.weights.mean(axis=2)
        return means

    @cached_property
    def head_overlap(self) -> Floats:
        """(heads, heads): the share of their weight that two heads give to the same tokens.

        For each dimension the smaller of both weights, summed over the tokens; then the mean over
        the dimensions. 1 for heads that weight alike, 0 for heads that have no token in common.
        """
        weights = self.weights.astype(np.float64)  # (heads, tokens, dim)
        # The total variation distance of two heads is half of their absolute difference.
        rows = [1 - np.abs(weights - head).sum(axis=1).mean(axis=1) / 2 for head in weights]
        return np.array(rows)

    @property
    def head_distances(self) -> Floats:
        """(heads, heads): 1 - `head_overlap`, from 0 to 1."""
        return 1 - self.head_overlap

    def __str__(self) -> str:
        return explanation_views.sentence_table(self)

    def to_html(self) -> str:
        """Returns an HTML page: the sentence once per head, by influence and by weight.

        Example:
            >>> Path("heads.html").write_text(explanation.to_html(), encoding="utf-8")
        """
        return explanation_views.page("What each head looks at", self._repr_html_())

    def _repr_html_(self) -> str:
        return explanation_views.sentence(self)


@dataclass(frozen=True)
class PairExplanation:
    """Which words two sentences are alike by, from `SentenceEncoder.explain_pair`.

    `print(explanation)` shows a table, `to_html()` returns a page, and a notebook renders it.

    Attributes:
        first: the explanation of the first sentence.
        second: the explanation of the second sentence.
        prediction: the label and what decides it, from `PairClassifier.explain`; else None.

    Example:
        >>> pair = model.explain_pair("A man sleeps.", "A person rests.")
        >>> pair.similarity, pair.head_similarity
        >>> pair.second.tokens[pair.similarity_influence[1].argmax()].text
    """

    first: Explanation
    second: Explanation
    prediction: LabelExplanation | None = None

    @property
    def sentences(self) -> tuple[Explanation, Explanation]:
        """Both explanations, in order."""
        return self.first, self.second

    @property
    def similarity(self) -> float:
        """The cosine of the two sentence vectors."""
        return float(cosines(self.first.vectors.vector, self.second.vectors.vector))

    @property
    def head_similarity(self) -> Floats:
        """(heads,): the cosine of the two vectors of each head."""
        return cosines(self.first.vectors.heads, self.second.vectors.heads)

    @cached_property
    def similarity_influence(self) -> tuple[Floats, Floats]:
        """For each sentence, (tokens,): the cosine minus the cosine without the token.

        A positive word carries the similarity, a negative one works against it.
        """
        first, second = self.first.vectors, self.second.vectors
        return (
            self.similarity - cosines(first.vector_without, second.vector),
            self.similarity - cosines(second.vector_without, first.vector),
        )

    def __str__(self) -> str:
        return explanation_views.pair_table(self)

    def to_html(self) -> str:
        """Returns an HTML page: similarity, label, and the words of both sentences.

        Example:
            >>> Path("pair.html").write_text(pair.to_html(), encoding="utf-8")
        """
        return explanation_views.page("What two sentences have in common", self._repr_html_())

    def _repr_html_(self) -> str:
        return explanation_views.pair(self)


def explain_states(
    sentence: str,
    tokens: list[Token],
    states: Tensor,
    pooling: Pooling,
    project: Callable[[Pooled], Pooled] = lambda pooled: pooled,
    gates: Tensor | None = None,
    truncated: bool = False,
    tree: str | None = None,
) -> Explanation:
    """Returns what each head of a pooling looks at in one sentence, whatever made the states.

    states (tokens, dim); gates (tokens, width), for a pooling with `needs_gates`; `project` is what
    follows the pooling.
    """
    weights = pooling_weights(pooling, states, gates).float().cpu().numpy()
    with torch.no_grad():
        extra = [] if gates is None else [gates.unsqueeze(0)]
        mask = torch.ones(1, len(states), dtype=torch.bool, device=states.device)  # (1, tokens)
        pooled = pooling.pool_rows(states, Packing.from_mask(mask), gates)  # as `encode` does
        [without] = pooling.heads_without(states.unsqueeze(0), mask, *extra)  # (heads, tokens, dim)
        by_token = without.transpose(0, 1)  # (tokens, heads, dim)
        vector_without = project(Pooled(by_token.flatten(1), by_token, None)).vector
        parts = project(pooled).vector[0], pooled.heads[0], vector_without, without
        vectors = LeaveOneOut(*(part.double().cpu().numpy() for part in parts))
    return Explanation(sentence, tokens, weights, vectors, truncated, tree=tree)


def degrees_between(first: Floats, second: Floats) -> Floats:
    """Returns the angle of vectors (..., dim), from 0 to 180 degrees; 90 with a vector of zeros."""
    first, second = unit_rows(first), unit_rows(second)
    # The arc cosine has no accurate digits for small angles, which are the most frequent here.
    difference = np.linalg.norm(first - second, axis=-1)
    total = np.linalg.norm(first + second, axis=-1)
    angles: Floats = np.degrees(2 * np.arctan2(difference, total))
    return angles


def cosines(first: Floats, second: Floats) -> Floats:
    """Returns the cosines of vectors (..., dim); 0 where one of them is zeros."""
    products: Floats = (unit_rows(first) * unit_rows(second)).sum(axis=-1)
    return products


def pooling_weights(pooling: Pooling, states: Tensor, gates: Tensor | None = None) -> Tensor:
    """Returns the weights (heads, tokens, dim or 1) of one sentence, also of max and mean.

    A dimension of a max, mean or last vector depends on the same dimension of the states alone,
    and linearly: its derivative by each token's state is that token's weight.
    """
    batch = states.detach().unsqueeze(0).requires_grad_()  # (1, tokens, dim)
    mask = torch.ones(batch.shape[:2], dtype=torch.bool, device=states.device)
    with torch.enable_grad():
        pooled: Pooled = pooling(batch, mask, *([] if gates is None else [gates.unsqueeze(0)]))
        if pooled.weights is not None:
            return pooled.weights[0].detach()
        if not batch.numel():
            return batch.new_zeros(pooled.heads.shape[1], *states.shape)
        heads = pooled.heads.unbind(dim=1)  # heads x (1, dim)
        gradients = [torch.autograd.grad(head.sum(), batch, retain_graph=True)[0] for head in heads]
        return torch.cat(gradients)

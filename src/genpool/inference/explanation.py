"""What a model looked at: the weight and the influence of every word of a sentence, or of a pair.

A weight is not an influence. A state can be small, or much like the others: then its word changes
little, whatever its weight. The influence of a word is how far a vector turns when the word's state
is left out of the pooling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from genpool.inference import explanation_html, explanation_text
from genpool.inference.influence import Floats, LeaveOneOut, cosines
from genpool.text import Token

Probabilities = Callable[[Floats], Floats]


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

    @classmethod
    def of(
        cls, labels: Sequence[str], sides: Sequence[LeaveOneOut], classify: Probabilities
    ) -> LabelExplanation:
        """Returns the label of one example, and the influence of each token on it.

        Args:
            labels: the names of the classes.
            sides: the vectors of the example's sentences.
            classify: returns the probabilities (examples, labels) for sentence vectors
                (sides, examples, output_dim).
        """
        vectors = [[side.vector for side in sides]]  # examples x sides x (output_dim,)
        for place, side in enumerate(sides):
            for without in side.vector_without:
                vectors.append([*vectors[0][:place], without, *vectors[0][place + 1 :]])
        probabilities = classify(np.array(vectors).swapaxes(0, 1))  # (examples, labels)
        label = int(probabilities[0].argmax())
        changes = probabilities[0, label] - probabilities[1:, label]  # (tokens of all sides,)
        ends = np.cumsum([len(side.vector_without) for side in sides])[:-1]
        return cls(tuple(labels), probabilities[0], tuple(np.split(changes, ends)))


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
        return self.vectors.vector_turns

    @cached_property
    def head_influence(self) -> Floats:
        """(heads, tokens): degrees that each head's vector turns when a token is left out."""
        return self.vectors.head_turns

    @property
    def token_weights(self) -> NDArray[np.float32]:
        """(heads, tokens): the mean of the weights over the dimensions; every row sums to 1."""
        means: NDArray[np.float32] = self.weights.mean(axis=2)
        return means

    @property
    def head_overlap(self) -> Floats:
        """(heads, heads): the share of their weight that two heads give to the same tokens.

        For each dimension the smaller of both weights, summed over the tokens; then the mean over
        the dimensions. 1 for heads that weight alike, 0 for heads that have no token in common.
        """
        return 1 - self.head_distances

    @cached_property
    def head_distances(self) -> Floats:
        """(heads, heads): half of the sum of absolute differences of weights, from 0 to 1.

        This is the total variation distance of the two heads, averaged over the dimensions; see
        `head_overlap`.
        """
        weights = self.weights.astype(np.float64)  # (heads, tokens, dim)
        rows = [np.abs(weights - head).sum(axis=1).mean(axis=1) / 2 for head in weights]
        return np.array(rows).reshape(len(weights), len(weights))

    def __str__(self) -> str:
        """Returns a table: a line per token, a column for the vector and for each head."""
        return explanation_text.sentence_table(self)

    def to_html(self) -> str:
        """Returns an HTML page: the sentence once per head, by influence and by weight.

        Example:
            >>> Path("heads.html").write_text(explanation.to_html(), encoding="utf-8")
        """
        return explanation_html.page("What each head looks at", self._repr_html_())

    def _repr_html_(self) -> str:
        """Returns the content of the page, which a notebook shows."""
        return explanation_html.sentence(self)


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
        """Returns the similarity and the label, then a table of the words of each sentence."""
        return explanation_text.pair_table(self)

    def to_html(self) -> str:
        """Returns an HTML page: similarity, label, and the words of both sentences.

        Example:
            >>> Path("pair.html").write_text(pair.to_html(), encoding="utf-8")
        """
        return explanation_html.page("What two sentences have in common", self._repr_html_())

    def _repr_html_(self) -> str:
        """Returns the content of the page, which a notebook shows."""
        return explanation_html.pair(self)

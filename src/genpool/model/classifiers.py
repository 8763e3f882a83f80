"""The two classifiers: of sentences, and of pairs of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from genpool.classifier import pair_features
from genpool.errors import InputError
from genpool.inference.explanation import Explanation, PairExplanation
from genpool.model.classifier import Classifier
from genpool.text.validation import require_pairs, require_texts


class TextClassifier(Classifier):
    """A model that predicts a label for each sentence; see `Classifier` for what it can do.

    Example:
        >>> model = TextClassifier.from_pretrained("my-model")
        >>> model.predict(["The food was good."])
        ['5']
    """

    kind = "TextClassifier"
    sentences_per_example = 1
    vectors_per_example = 1

    def features(self, vectors: Tensor) -> Tensor:
        """Returns the sentence vectors (examples, output_dim) themselves."""
        return vectors

    def _rows(self, examples: Any) -> Iterable[Sequence[str]]:
        if isinstance(examples, str):
            raise InputError("got one string; expected a list of sentences: predict([sentence]).")
        return ([text] for text in require_texts(examples))

    def explain(self, sentence: str) -> Explanation:
        """Returns the label of a sentence, its probabilities, and the words that decide it.

        Args:
            sentence: one sentence. Tokens beyond `text.max_length` are left out.

        Returns:
            An `Explanation` with its `prediction`; print it, or write `to_html()` to a file.

        Raises:
            InputError: the sentence is not a string.

        Example:
            >>> explanation = model.explain("The food was good.")
            >>> explanation.prediction.label, explanation.prediction.influence
        """
        explanation = self.encoder.explain(sentence)
        return replace(explanation, prediction=self.explain_label(explanation))


class PairClassifier(Classifier):
    """A model that predicts a label for each pair of sentences, such as premise and hypothesis.

    See `Classifier` for what it can do. The encoder encodes both sentences.

    Example:
        >>> model = PairClassifier.from_pretrained()
        >>> model.predict([("A man sleeps.", "A person rests.")])
        ['entailment']
    """

    kind = "PairClassifier"
    sentences_per_example = 2
    vectors_per_example = 4

    def features(self, vectors: Tensor) -> Tensor:
        """Returns the features (examples, 4 * output_dim) of first sentences, then second ones."""
        return pair_features(*vectors.chunk(2))

    def _rows(self, examples: Any) -> Iterable[Sequence[str]]:
        return require_pairs(examples)

    def explain(self, first: str, second: str) -> PairExplanation:
        """Returns the label of a pair, its probabilities, and the words of both sides that decide.

        Args:
            first: the first sentence, such as a premise.
            second: the second sentence, such as a hypothesis.

        Returns:
            A `PairExplanation` with its `prediction`; print it, or write `to_html()` to a file.

        Raises:
            InputError: a sentence is not a string.

        Example:
            >>> pair = model.explain("A man sleeps.", "A person rests.")
            >>> pair.prediction.label, pair.prediction.influence
        """
        pair = self.encoder.explain_pair(first, second)
        return replace(pair, prediction=self.explain_label(*pair.sentences))

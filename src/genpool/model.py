"""The three models: the sentence encoder, and two classifiers that put an MLP on top of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.classifier import MLP, CalibrationMethods, FitPairs, FitTexts, pair_features
from genpool.config import ModelSettings
from genpool.errors import FolderError, InputError
from genpool.inference.batching import evaluation_mode, map_by_length
from genpool.inference.explanation import Explanation, LabelExplanation, PairExplanation
from genpool.pooling import Pooled
from genpool.progress import progress
from genpool.saving import storage
from genpool.saving.saved_model import SavedModel
from genpool.sentence_encoder import SentenceEncoder
from genpool.text import Batch, TextPipeline
from genpool.text.validation import require_pairs, require_texts

__all__ = [
    "CLASSIFIERS",
    "Classified",
    "Classifier",
    "PairClassifier",
    "SentenceEncoder",
    "TextClassifier",
    "load_model",
]

Vectors = NDArray[np.float32]


class Classified(NamedTuple):
    """Logits (batch, classes), and the pooled sentences that they were computed from."""

    logits: Tensor
    pooled: Pooled


class Classifier(SavedModel, CalibrationMethods):
    """What the two classifiers share: an encoder, the MLP, and labels by name."""

    #: 1 or 2
    sentences_per_example: int
    #: the width of the MLP's input, in sentence vectors
    vectors_per_example: int
    #: after `fit`, how the training went and the scores on dev; None for a model that was loaded
    report: Any = None

    def __init__(self, encoder: SentenceEncoder, labels: Sequence[str]) -> None:
        super().__init__(encoder.text, encoder.settings)
        wrong = isinstance(labels, str) or not all(isinstance(label, str) for label in labels)
        if wrong or len(labels) < 2 or len(set(labels)) != len(labels):
            raise InputError(f"labels are {labels!r}; expected two or more different texts.")
        self.labels = tuple(labels)
        self.encoder = encoder
        settings = self.settings.classifier
        self.mlp = MLP(
            self.vectors_per_example * encoder.output_dim,
            settings.hidden_dim,
            len(labels),
            settings.dropout,
            settings.initialization,
            settings.dropout_scaling,
        )

    @classmethod
    def _assemble(
        cls, text: TextPipeline, settings: ModelSettings, labels: tuple[str, ...]
    ) -> Self:
        return cls(SentenceEncoder(text, settings), labels)

    def features(self, vectors: Tensor) -> Tensor:
        """Returns the MLP's input for the sentence vectors of a batch."""
        raise NotImplementedError

    def forward(self, batch: Batch, weights: bool = False) -> Classified:
        """Returns logits and pooled sentences of a batch, with gradients; the way of training.

        Args:
            batch: sentences; of pairs, first all first sentences, then all second ones.
            weights: also return the pooling's weights. Default: False.

        Returns:
            `Classified`: logits (examples, labels), and the `Pooled` sentences.
        """
        pooled = self.encoder(batch, weights)
        return Classified(self.mlp(self.features(pooled.vector)), pooled)

    def predict_tokenized(
        self,
        examples: list[list[list[str]]],
        batch_size: int = 64,
        show_progress_bar: bool = False,
    ) -> Vectors:
        """Returns the probabilities of tokenized examples.

        Args:
            examples: the words of each sentence of each example, from `text.words`.
            batch_size: examples per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar on standard error. Default: False.

        Returns:
            Probabilities (examples, labels), in the order of `labels`.

        Raises:
            InputError: batch_size is below 1.
        """

        def run(group: list[list[list[str]]]) -> Tensor:
            # One pass for both sides: first all first sentences, then all second ones.
            sentences = [words for side in zip(*group, strict=True) for words in side]
            with evaluation_mode():
                classified: Classified = self(self.text.batch(sentences).to(self.device))
                return classified.logits.float().softmax(dim=1).cpu()  # (examples, labels)

        def longest(example: list[list[str]]) -> int:
            return max(len(words) for words in example)

        with progress("predicting", len(examples), shown=show_progress_bar) as done:
            chunks = list(map_by_length(examples, longest, run, batch_size, done))
        return torch.cat(chunks).numpy() if chunks else np.zeros((0, len(self.labels)), np.float32)

    def explain_label(self, *sides: Explanation) -> LabelExplanation:
        """Returns the label of one example, and the influence of every token on it.

        Args:
            sides: what the encoder of this model explained: one sentence, or the two of a pair.
        """

        def classify(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
            rows = torch.from_numpy(vectors).flatten(0, 1)  # (sides * examples, output_dim)
            with evaluation_mode():
                logits: Tensor = self.mlp(self.features(rows.to(self.device, self.dtype)))
            probabilities: NDArray[np.float64] = logits.double().softmax(dim=1).cpu().numpy()
            return probabilities  # (examples, labels)

        return LabelExplanation.of(self.labels, [side.vectors for side in sides], classify)

    def _top_labels(self, probabilities: Vectors) -> list[str]:
        return [self.labels[place] for place in probabilities.argmax(axis=1)]


class TextClassifier(FitTexts, Classifier):
    """A model that predicts a label for each sentence.

    Prediction can run in several threads at once and in any mode: dropout is off inside.

    Args:
        encoder: the sentence encoder; its settings hold those of the classifier.
        labels: two or more different names.

    Attributes:
        encoder: the `SentenceEncoder`.
        labels: the names of the classes, in the order of the probabilities.

    Raises:
        InputError: fewer than two labels, or one twice, or one that is not a string.

    Example:
        >>> model = TextClassifier.from_pretrained("my-model")
        >>> model.predict(["The food was good."])
        ['5']
    """

    sentences_per_example = 1
    vectors_per_example = 1

    def features(self, vectors: Tensor) -> Tensor:
        """Returns the sentence vectors (examples, output_dim) themselves."""
        return vectors

    def predict_proba(
        self, sentences: Sequence[str], batch_size: int = 64, show_progress_bar: bool = False
    ) -> Vectors:
        """Returns the probability of every label for each sentence.

        Args:
            sentences: a list of sentences.
            batch_size: sentences per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar on standard error. Default: False.

        Returns:
            Probabilities (sentences, labels), float32, in the order of `labels`; every row sums
            to 1.

        Raises:
            InputError: not a list of strings, or batch_size is below 1.

        Example:
            >>> model.predict_proba(["The food was good."]).shape
            (1, 5)
        """
        if isinstance(sentences, str):
            raise InputError("got one string; expected a list of sentences: predict([sentence]).")
        examples = [[self.text.words(text)] for text in require_texts(sentences)]
        return self.predict_tokenized(examples, batch_size, show_progress_bar)

    def predict(
        self, sentences: Sequence[str], batch_size: int = 64, show_progress_bar: bool = False
    ) -> list[str]:
        """Returns the most probable label of each sentence.

        Args:
            sentences: a list of sentences.
            batch_size: sentences per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar on standard error. Default: False.

        Returns:
            One of `labels` for each sentence.

        Raises:
            InputError: not a list of strings, or batch_size is below 1.
        """
        return self._top_labels(self.predict_proba(sentences, batch_size, show_progress_bar))

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


class PairClassifier(FitPairs, Classifier):
    """A model that predicts a label for each pair of sentences, such as premise and hypothesis.

    Prediction can run in several threads at once and in any mode: dropout is off inside.

    Args:
        encoder: the sentence encoder, which encodes both sentences; its settings hold those of
            the classifier.
        labels: two or more different names.

    Attributes:
        encoder: the `SentenceEncoder`.
        labels: the names of the classes, in the order of the probabilities.

    Raises:
        InputError: fewer than two labels, or one twice, or one that is not a string.

    Example:
        >>> model = PairClassifier.from_pretrained()
        >>> model.predict([("A man sleeps.", "A person rests.")])
        ['entailment']
    """

    sentences_per_example = 2
    vectors_per_example = 4

    def features(self, vectors: Tensor) -> Tensor:
        """Returns the features (examples, 4 * output_dim) of pairs.

        The first half of the batch are the first sentences, the second half the second ones.
        """
        first, second = vectors.chunk(2)  # 2 x (examples, output_dim)
        return pair_features(first, second)

    def predict_proba(
        self,
        pairs: Sequence[tuple[str, str]],
        batch_size: int = 64,
        show_progress_bar: bool = False,
    ) -> Vectors:
        """Returns the probability of every label for each pair.

        Args:
            pairs: a list of pairs of sentences.
            batch_size: pairs per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar on standard error. Default: False.

        Returns:
            Probabilities (pairs, labels), float32, in the order of `labels`; every row sums to 1.

        Raises:
            InputError: not a list of pairs of strings, or batch_size is below 1.

        Example:
            >>> model.predict_proba([("A man sleeps.", "A person rests.")]).shape
            (1, 3)
        """
        examples = [[self.text.words(side) for side in pair] for pair in require_pairs(pairs)]
        return self.predict_tokenized(examples, batch_size, show_progress_bar)

    def predict(
        self,
        pairs: Sequence[tuple[str, str]],
        batch_size: int = 64,
        show_progress_bar: bool = False,
    ) -> list[str]:
        """Returns the most probable label of each pair.

        Args:
            pairs: a list of pairs of sentences.
            batch_size: pairs per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar on standard error. Default: False.

        Returns:
            One of `labels` for each pair.

        Raises:
            InputError: not a list of pairs of strings, or batch_size is below 1.
        """
        return self._top_labels(self.predict_proba(pairs, batch_size, show_progress_bar))

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


#: the kinds of folder that hold a classifier
CLASSIFIERS = {kind.__name__: kind for kind in (TextClassifier, PairClassifier)}


def load_model(path: str | Path) -> SentenceEncoder | TextClassifier | PairClassifier:
    """Loads the model of a folder, of any of the three kinds.

    Args:
        path: a folder that `save_pretrained` wrote.

    Returns:
        The model, in evaluation mode.

    Raises:
        FolderError: the folder is missing, incomplete, damaged, or not a genpool model.
    """
    kinds: dict[str, type[SentenceEncoder | TextClassifier | PairClassifier]]
    kinds = {SentenceEncoder.__name__: SentenceEncoder, **CLASSIFIERS}

    def load(folder: storage.SavedFolder) -> SentenceEncoder | TextClassifier | PairClassifier:
        if folder.kind not in kinds:
            raise FolderError(
                f"{path} contains {folder.kind!r}; expected one of {', '.join(kinds)}."
            )
        return kinds[folder.kind]._load(folder)

    return storage.read_folder(path, load)

"""The two classifiers of users, and the function that loads a model of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from genpool.classifier import pair_features
from genpool.errors import FolderError, InputError
from genpool.inference.explanation import Explanation, PairExplanation
from genpool.model.classifier import Classifier
from genpool.model.sentence_encoder import SentenceEncoder
from genpool.registry import load_plugins
from genpool.saving import storage
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
        """Returns the features (examples, 4 * output_dim) of pairs.

        The first half of the batch are the first sentences, the second half the second ones.
        """
        first, second = vectors.chunk(2)  # 2 x (examples, output_dim)
        return pair_features(first, second)

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


Model = SentenceEncoder | TextClassifier | PairClassifier
#: every model by the kind of its folder
MODELS: dict[str, type[Model]] = {
    cls.kind: cls for cls in (SentenceEncoder, TextClassifier, PairClassifier)
}


def load_model(path: str | Path, plugins: Sequence[str] = ()) -> Model:
    """Loads the model of a folder, of any of the three kinds.

    Args:
        path: a folder that `save_pretrained` wrote.
        plugins: modules to import first, as in `SentenceEncoder.from_pretrained`. Default: none.

    Returns:
        The model, in evaluation mode.

    Raises:
        FolderError: the folder is missing, incomplete, damaged, or not a genpool model.
        ConfigError: a plugin cannot be imported.
    """
    load_plugins(plugins)

    def load(folder: storage.SavedFolder) -> Model:
        if folder.kind not in MODELS:
            known = ", ".join(MODELS)
            raise FolderError(f"{path} contains {folder.kind!r}; expected one of {known}.")
        return MODELS[folder.kind]._load(folder)

    return storage.read_folder(path, load)

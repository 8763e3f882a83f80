"""genpool as estimators of scikit-learn: sentence vectors, fine-tuning, and probes.

>>> from genpool.integrations.sklearn import GenpoolClassifier, SentenceVectorizer
>>> make_pipeline(SentenceVectorizer(), LogisticRegression()).fit(texts, labels)
>>> cross_val_score(GenpoolClassifier(), texts, labels)

Needs the extra `sklearn`: pip install 'genpool[sklearn]'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from genpool.errors import InputError, require_extra
from genpool.inference.sentence_vectors import SentenceVectors, resolve_truncate_dim
from genpool.integrations.load_encoder import FolderBytes
from genpool.integrations.probing import AttentiveProbe
from genpool.model import SentenceEncoder, TextClassifier
from genpool.saving.saved_model import SavedModel
from genpool.text.validation import read_labels, read_texts

with require_extra("genpool.integrations.sklearn", "sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d

__all__ = ["AttentiveProbe", "GenpoolClassifier", "SentenceVectorizer"]

_MAX_SEED = 2**31 - 1


class _TextEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator of texts; a pickle of it holds models as the bytes of their saved folders."""

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: FolderBytes(value) if isinstance(value, SavedModel) else value
            for name, value in super().__getstate__().items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            state[name] = value.load() if isinstance(value, FolderBytes) else value
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


class SentenceVectorizer(TransformerMixin, _TextEstimator):  # type: ignore[misc]
    """Turns texts into sentence vectors.

    Nothing is learned: `transform` works without `fit`. A pickle holds a model that was passed, or
    loaded from a folder, as the bytes of its saved folder.

    Args:
        model: the folder of a model, or a `SentenceEncoder`. Default: None, the encoder inside the
            package.
        batch_size: texts per batch; fewer where they are long. Default: 64.
        normalize_embeddings: scale every vector to length 1. Default: False.
        truncate_dim: keep only this number of leading dimensions. Default: None, all of them.
        show_progress_bar: show a bar on standard error. Default: False.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> pipeline = make_pipeline(SentenceVectorizer(), LogisticRegression(max_iter=1000))
        >>> pipeline.fit(["I love it.", "A waste."], ["good", "bad"])
    """

    def __init__(
        self,
        model: str | Path | SentenceVectors | None = None,
        *,
        batch_size: int = 64,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        show_progress_bar: bool = False,
    ) -> None:
        self.model = model
        self.batch_size = batch_size
        self.normalize_embeddings = normalize_embeddings
        self.truncate_dim = truncate_dim
        self.show_progress_bar = show_progress_bar

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Checks the texts and the options; there is nothing to learn.

        Args:
            X: a list, an array or a column of texts.
            y: not used. Default: None.

        Returns:
            The transformer itself.

        Raises:
            InputError: X is not a list of texts, or an option is not possible.
            FolderError: `model` is a folder that cannot be read.
        """
        read_texts(X)
        resolve_truncate_dim(self._encoder(), self.truncate_dim)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """Returns the vectors of texts.

        Args:
            X: a list, an array or a column of texts.

        Returns:
            Vectors (texts, output_dim or truncate_dim), float32.

        Raises:
            InputError: X is not a list of texts, or an option is not possible.
            FolderError: `model` is a folder that cannot be read.
        """
        return self._encoder().encode(
            read_texts(X),
            batch_size=self.batch_size,
            show_progress_bar=self.show_progress_bar,
            normalize_embeddings=self.normalize_embeddings,
            truncate_dim=self.truncate_dim,
        )

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Returns the names of the dimensions: "sentencevectorizer0", "sentencevectorizer1", ...

        Args:
            input_features: not used. Default: None.
        """
        dim = resolve_truncate_dim(self._encoder(), self.truncate_dim)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{at}" for at in range(dim)], dtype=object)

    def _encoder(self) -> SentenceVectors:
        """Returns the encoder; one of a folder is loaded when it is first needed."""
        if self.model is None:
            return _embedded_encoder()
        if not isinstance(self.model, str | Path):
            return self.model
        folder = str(self.model)
        if getattr(self, "_folder", None) != folder:
            self._loaded, self._folder = SentenceEncoder.from_pretrained(folder), folder
        return self._loaded

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []  # vectors are float32
        return tags


@lru_cache(maxsize=1)
def _embedded_encoder() -> SentenceEncoder:
    """Returns the encoder inside the package, loaded once for all folds of a search."""
    return SentenceEncoder.from_pretrained()


class GenpoolClassifier(ClassifierMixin, _TextEstimator):  # type: ignore[misc]
    """A `TextClassifier` that is trained by `fit`, with the interface of scikit-learn.

    Args:
        start: the model to start from: "embedded" (the encoder inside the package), the folder of
            a model, a model, or "scratch" for new weights. Default: "embedded".
        freeze: the part of the encoder that is not trained: "nothing", the "words", or the complete
            "encoder". Default: "nothing".
        epochs: passes over the rows. Default: None, as many as the number of rows needs.
        batch_size: rows of a step. Default: None, that of the recipe.
        learning_rate: of the classifier. Default: None, that of the recipe.
        settings: further settings of the recipe `texts`, as "section.key=value". Default: none.
        random_state: an integer, a NumPy `RandomState`, or None for a new seed in every `fit`.
            Default: 0.
        show_progress_bar: show progress on standard error. Default: False.

    Attributes:
        classes_: the labels, sorted, as `fit` got them: strings, integers or booleans.
        model_: the `TextClassifier`; save it with `model_.save_pretrained(folder)`. A pickle of
            this estimator holds the bytes of that folder.

    Example:
        >>> from sklearn.model_selection import cross_val_score
        >>> cross_val_score(GenpoolClassifier(), texts, labels, cv=3)
    """

    def __init__(
        self,
        start: str | Path | SentenceEncoder | TextClassifier = "embedded",
        *,
        freeze: str = "nothing",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        settings: Sequence[str] = (),
        random_state: int | np.random.RandomState | None = 0,
        show_progress_bar: bool = False,
    ) -> None:
        self.start = start
        self.freeze = freeze
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.settings = settings
        self.random_state = random_state
        self.show_progress_bar = show_progress_bar

    def fit(self, X: Any, y: Any, dev: tuple[Any, Any] | None = None) -> Self:  # noqa: N803
        """Trains the classifier; see `TextClassifier.fit`.

        Args:
            X: a list, an array or a column of texts.
            y: as many labels: strings, integers or booleans.
            dev: texts and labels to choose the best weights on. Default: None, which holds out a
                tenth of the rows.

        Returns:
            The classifier itself.

        Raises:
            InputError: X or y cannot be used: missing values, lengths that differ, mixed types, one
                class only, or no rows.
            DataError: there are too few rows to hold some out.
        """
        texts = read_texts(X)
        labels = _labels(y, len(texts))
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            found = ", ".join(map(repr, self.classes_.tolist())) or "none"
            raise InputError(f"y has one class only ({found}); expected two classes or more.")
        # The labels of the model are strings; a class keeps its type in `classes_`.
        names = [str(label).strip() for label in self.classes_.tolist()]
        if not all(names) or len(set(names)) < len(names):  # not told apart as strings
            names = [f"class {at}" for at in range(len(names))]
        if dev is not None:
            dev_texts = read_texts(dev[0])
            dev = (dev_texts, self._rename(_labels(dev[1], len(dev_texts)), names))
        seed: Any = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(_MAX_SEED)
        self.model_ = TextClassifier.fit(
            texts,
            self._rename(labels, names),
            start=self.start,
            dev=dev,
            freeze=self.freeze,  # type: ignore[arg-type]  # checked there
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=seed,
            settings=self.settings,
            show_progress_bar=self.show_progress_bar,
        )
        self._columns = [self.model_.labels.index(name) for name in names]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """Returns the probability of every class for each text.

        Args:
            X: a list, an array or a column of texts.

        Returns:
            Probabilities (texts, classes), in the order of `classes_`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: X is not a list of texts.
        """
        check_is_fitted(self)
        return self.model_.predict_proba(read_texts(X))[:, self._columns]

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Returns the most probable class of each text.

        Args:
            X: a list, an array or a column of texts.

        Returns:
            Classes (texts,), of the type of `classes_`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: X is not a list of texts.
        """
        best = self.predict_proba(X).argmax(axis=1)  # (texts,)
        return np.asarray(self.classes_[best])

    def _rename(self, labels: NDArray[Any], names: list[str]) -> list[str]:
        by_class = dict(zip(self.classes_.tolist(), names, strict=True))
        unknown = [label for label in labels.tolist() if label not in by_class]
        if unknown:
            raise InputError(f"dev has the label {unknown[0]!r}, which no training row has.")
        return [by_class[label] for label in labels.tolist()]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _labels(y: Any, rows: int) -> NDArray[Any]:
    """Returns labels as an array, once genpool and scikit-learn have checked them."""
    if y is None:
        raise InputError("this estimator requires y to be passed, but the target y is None.")
    values = read_labels(y, rows, "y")
    if any(isinstance(value, float) and math.isinf(value) for value in values):
        raise InputError("y contains infinity; expected strings, integers or booleans.")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    check_classification_targets(labels)
    return labels

"""Sentence vectors as a transformer of scikit-learn."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from genpool.inference.sentence_vectors import SentenceVectors, resolve_truncate_dim
from genpool.integrations.sklearn.folder_bytes import pack_models, unpack_models
from genpool.sentence_encoder import SentenceEncoder
from genpool.text.validation import read_texts


class SentenceVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
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

    def __getstate__(self) -> dict[str, Any]:
        return pack_models(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(unpack_models(state))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []  # vectors are float32
        return tags


@lru_cache(maxsize=1)
def _embedded_encoder() -> SentenceEncoder:
    """Returns the encoder inside the package, loaded once for all folds of a search."""
    return SentenceEncoder.from_pretrained()

"""One way to load any encoder of sentences that is a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from genpool.disk.files import is_file
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.model import PairClassifier, SentenceEncoder, TextClassifier, load_model

if TYPE_CHECKING:
    from genpool.integrations.sentence_transformers.encoder import (
        SentenceTransformerEncoder,
    )

#: the file that says that a folder is of sentence-transformers
MODULES = "modules.json"


def load_encoder(
    path: str | Path | None = None,
) -> SentenceEncoder | SentenceTransformerEncoder:
    """Loads a folder of genpool or of sentence-transformers; nothing in it is run as code.

    Args:
        path: a folder that genpool saved (of a classifier its encoder is loaded), or that
            sentence-transformers saved. Default: None, the encoder inside the package.

    Returns:
        An encoder with `encode`, `encode_stream`, `similarity` and `explain`.

    Raises:
        FolderError: the folder is missing, damaged, of another kind, or asks for code or a pickle.
        MissingExtraError: the folder is of sentence-transformers, which is not installed.

    Example:
        >>> load_encoder("minilm-generalized").encode(["A man sleeps."])
    """
    if path is None or not _is_sentence_transformers(path):
        return SentenceEncoder.from_pretrained(path)
    return _load_sentence_transformer(path)


def as_encoder(model: str | Path | SentenceVectors | None) -> SentenceVectors:
    """Returns an encoder as it is, or loads it from a folder like `load_encoder`.

    Args:
        model: an encoder, a folder, or None for the encoder inside the package.

    Raises:
        FolderError: the folder cannot be loaded.
    """
    return load_encoder(model) if model is None or isinstance(model, str | Path) else model


def load_explainable(
    path: str | Path,
) -> SentenceEncoder | TextClassifier | PairClassifier | SentenceTransformerEncoder:
    """Loads a folder like `load_encoder`, but a classifier as a classifier.

    Args:
        path: a folder that genpool or sentence-transformers saved.

    Raises:
        FolderError: the folder is missing, damaged, of another kind, or asks for code or a pickle.
        MissingExtraError: the folder is of sentence-transformers, which is not installed.
    """
    return _load_sentence_transformer(path) if _is_sentence_transformers(path) else load_model(path)


def _is_sentence_transformers(path: str | Path) -> bool:
    return is_file(Path(path) / MODULES)


def _load_sentence_transformer(path: str | Path) -> SentenceTransformerEncoder:
    from genpool.integrations.sentence_transformers.encoder import (
        SentenceTransformerEncoder,
    )

    return SentenceTransformerEncoder.from_pretrained(path)

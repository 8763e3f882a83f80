"""Models of any folder, for the other integrations and the commands."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genpool.disk.files import is_file
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.model import PairClassifier, SentenceEncoder, TextClassifier, load_model
from genpool.saving.saved_model import SavedModel
from genpool.saving.storage import OWN_FILES

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
    """Returns an encoder as it is, or loads it from a folder like `load_encoder`."""
    return load_encoder(model) if model is None or isinstance(model, str | Path) else model


def load_explainable(
    path: str | Path,
) -> SentenceEncoder | TextClassifier | PairClassifier | SentenceTransformerEncoder:
    """Loads a folder like `load_encoder`, but a classifier as a classifier."""
    return _load_sentence_transformer(path) if _is_sentence_transformers(path) else load_model(path)


def _is_sentence_transformers(path: str | Path) -> bool:
    return is_file(Path(path) / MODULES)


def _load_sentence_transformer(path: str | Path) -> SentenceTransformerEncoder:
    from genpool.integrations.sentence_transformers.encoder import (
        SentenceTransformerEncoder,
    )

    return SentenceTransformerEncoder.from_pretrained(path)


class FolderBytes:
    """A model as the bytes of its saved folder, for pickles and other processes.

    The weights travel as safetensors and JSON, and are checked when they are read, as in every
    folder.
    """

    def __init__(self, model: SavedModel) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            model.save_pretrained(folder)
            self.files = {name: (folder / name).read_bytes() for name in OWN_FILES}

    def load(self) -> Any:
        """Returns the model."""
        with tempfile.TemporaryDirectory() as temporary:
            for name in OWN_FILES:
                (Path(temporary) / name).write_bytes(self.files[name])
            return load_model(temporary)

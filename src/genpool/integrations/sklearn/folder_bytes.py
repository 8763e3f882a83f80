"""A model as the bytes of its saved folder: what a pickle of an estimator holds of it.

The weights travel as safetensors and JSON, and are checked when they are read, as in every folder.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from genpool.model import load_model
from genpool.saving.saved_model import SavedModel
from genpool.saving.storage import OWN_FILES


class FolderBytes:
    """The files of a saved model.

    Args:
        model: a SentenceEncoder, TextClassifier or PairClassifier.
    """

    def __init__(self, model: SavedModel) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            model.save_pretrained(folder)
            self.files = {name: (folder / name).read_bytes() for name in OWN_FILES}

    def load(self) -> Any:
        """Returns the model.

        Raises:
            FolderError: the files are damaged.
        """
        with tempfile.TemporaryDirectory() as temporary:
            for name in OWN_FILES:
                (Path(temporary) / name).write_bytes(self.files[name])
            return load_model(temporary)


def pack_models(state: dict[str, Any]) -> dict[str, Any]:
    """Returns the state of an estimator with the bytes of a folder for every model."""
    return {
        name: FolderBytes(value) if isinstance(value, SavedModel) else value
        for name, value in state.items()
    }


def unpack_models(state: dict[str, Any]) -> dict[str, Any]:
    """Returns the state of an estimator with the models that `pack_models` replaced."""
    return {
        name: value.load() if isinstance(value, FolderBytes) else value
        for name, value in state.items()
    }

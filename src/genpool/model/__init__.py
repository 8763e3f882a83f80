"""The three models: the sentence encoder, and two classifiers that put an MLP on top of it."""

from collections.abc import Sequence
from pathlib import Path

from genpool.errors import FolderError
from genpool.model.classifier import Classified, Classifier
from genpool.model.classifiers import PairClassifier, TextClassifier
from genpool.model.sentence_encoder import SentenceEncoder
from genpool.registry import load_plugins
from genpool.saving import storage

__all__ = [
    "Classified",
    "Classifier",
    "PairClassifier",
    "SentenceEncoder",
    "TextClassifier",
    "load_model",
]

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

"""Loading folders into sentence-transformers: its own with genpool's modules, and genpool's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, overload

from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.model import BaseModel
from sentence_transformers.base.modules import Module
from torch import nn

from genpool.embedded import embedded_folder
from genpool.errors import FolderError, GenpoolError, InputError
from genpool.integrations.sentence_transformers.encoder import SentenceEncoderModule
from genpool.integrations.sentence_transformers.heads import HeadVectors
from genpool.integrations.sentence_transformers.pooling import GeneralizedPooling
from genpool.integrations.sentence_transformers.saving import MODEL_CONFIG
from genpool.integrations.sentence_transformers.trust import MODULES, check_folder, read_json
from genpool.model import SentenceEncoder, load_model
from genpool.saving import storage

#: genpool's modules by their names in modules.json
GENPOOL_MODULES: dict[str, type[Module]] = {
    f"{cls.__module__}.{cls.__name__}": cls
    for cls in (GeneralizedPooling, HeadVectors, SentenceEncoderModule)
}

#: options that are passed on to transformers
OPTION_GROUPS = ("model_kwargs", "processor_kwargs", "config_kwargs")

Model = TypeVar("Model", bound=BaseModel)


@overload
def load(path: str | Path | None, model_class: type[Model], **options: Any) -> Model: ...
@overload
def load(path: None = None, *, model_class: type[Model], **options: Any) -> Model: ...
@overload
def load(path: str | Path | None = None, **options: Any) -> SentenceTransformer: ...
def load(
    path: str | Path | None = None,
    model_class: type[BaseModel] = SentenceTransformer,
    **options: Any,
) -> BaseModel:
    """Loads a model with genpool's modules into sentence-transformers, without trusting its folder.

    Args:
        path: a folder that sentence-transformers saved, or one that genpool saved (of a classifier
            the encoder is loaded). No code and no pickle in it is ever opened. Default: None, the
            encoder that is part of genpool.
        model_class: SentenceTransformer, or MultiVectorEncoder for models of that kind.
            Default: SentenceTransformer.
        options: arguments of model_class, such as device or prompts.

    Returns:
        The model, an instance of model_class.

    Raises:
        FolderError: the folder is missing, damaged, of another kind, or asks for code or a pickle.
        InputError: the options contain trust_remote_code.
        MissingExtraError: sentence-transformers is not installed.

    Example:
        >>> model = load("my-model")
        >>> model.encode(["A man sleeps."])
    """
    groups = [options, *(options.get(name) or {} for name in OPTION_GROUPS)]
    if any("trust_remote_code" in group for group in groups):
        raise InputError(
            "load takes no trust_remote_code: it loads only folders that need no trust. "
            "If you trust this one, use sentence-transformers itself."
        )
    folder = embedded_folder(SentenceEncoder.__name__) if path is None else Path(path)
    if not folder.is_dir():
        raise FolderError(f"{folder}: there is no such folder; expected a saved model.")
    if (folder / MODULES).is_file():
        return _with_card_name(_load_saved(folder, model_class, options), path)
    if (folder / storage.CONFIG).is_file():
        model = model_class(modules=_modules_of(folder, model_class), **options)
        return _with_card_name(model, path)
    names = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
    raise FolderError(
        f"{folder} has neither {MODULES} (sentence-transformers) nor {storage.CONFIG} (genpool). "
        f"It contains: {names}."
    )


def _with_card_name(model: Model, path: str | Path | None) -> Model:
    """Names the model on its card: mteb stores results by this name."""
    card: Any = model.model_card_data
    if card.model_name is None:
        parts = ("genpool", "embedded") if path is None else Path(path).resolve().parts[-2:]
        card.model_name = "/".join(parts)
    return model


def _load_saved(folder: Path, model_class: type[Model], options: dict[str, Any]) -> Model:
    """Loads a folder that sentence-transformers saved."""
    check_folder(folder, GENPOOL_MODULES)
    config = read_json(folder / MODEL_CONFIG) if (folder / MODEL_CONFIG).is_file() else {}
    kind = config.get("model_type", "SentenceTransformer") if isinstance(config, dict) else None
    if kind != model_class.model_type:  # it would be converted, without its last modules
        raise FolderError(
            f"{folder} contains a {kind}; expected a {model_class.model_type}. Pass its class: "
            f"load(folder, {kind})."
        )
    safe = {**(options.pop("model_kwargs", None) or {}), "use_safetensors": True}
    # The classes are passed in, so that nothing has to be trusted. The method is private, but the
    # public way is trust_remote_code=True, which trusts everything else in the folder too.
    try:
        return model_class._load_with_module_classes(
            str(folder), GENPOOL_MODULES, local_files_only=True, model_kwargs=safe, **options
        )
    except (GenpoolError, ImportError):  # ImportError: what the model requires is not installed
        raise
    except Exception as error:  # whatever a damaged file leads to in three libraries
        problem = str(error).strip().split("\n")[0] or type(error).__name__
        raise FolderError(f"{folder} cannot be loaded: {problem}") from error


def _modules_of(folder: Path, model_class: type[BaseModel]) -> list[nn.Module]:
    """Returns the modules that make a genpool folder a model of sentence-transformers."""
    model = load_model(folder)
    encoder = model if isinstance(model, SentenceEncoder) else model.encoder
    modules: list[nn.Module] = [SentenceEncoderModule(encoder)]
    if issubclass(model_class, MultiVectorEncoder):
        modules.append(HeadVectors(encoder.pooling.input_dim))
    return modules

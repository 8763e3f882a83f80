"""Loading folders into sentence-transformers: its own with genpool's modules, and genpool's.

sentence-transformers asks for trust_remote_code=True where a folder names a module of another
package. Here the names are compared with a list instead, and nothing in a folder is run as code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.model import BaseModel
from sentence_transformers.base.modules import Module, Transformer
from sentence_transformers.util import import_from_string
from torch import nn
from typing_extensions import TypeVar

from genpool.disk.folder_format import ST_MODULES as MODULES
from genpool.errors import FolderError, GenpoolError, InputError
from genpool.integrations.sentence_transformers.modules import (
    MODEL_CONFIG,
    HeadVectors,
    PoolingModule,
    SentenceEncoderModule,
)
from genpool.model import SentenceEncoder
from genpool.saving import storage

ROUTER = "router_config.json"
#: prefix of the modules that sentence-transformers itself contains
LIBRARY_PREFIX = "sentence_transformers."
#: settings that can lead to code from elsewhere, and the values of them that cannot
DANGEROUS: dict[str, tuple[str, ...]] = {
    "auto_map": (),
    "trust_remote_code": (),
    "quantization_config": (),
    "use_kernels": (),
    "attn_implementation": ("eager", "sdpa"),
    "_attn_implementation": ("eager", "sdpa"),
    "experts_implementation": ("eager",),
    "_experts_implementation": ("eager",),
}
#: the settings of sentence-transformers' first module, as it writes them now and did before
TRANSFORMER_CONFIG = "sentence_bert_config.json"
TRANSFORMER_SETTINGS = {*Transformer.config_keys, "max_seq_length", "do_lower_case"}
#: genpool's modules by their names in modules.json
GENPOOL_MODULES: dict[str, type[Module]] = {
    f"{cls.__module__}.{cls.__name__}": cls
    for cls in (PoolingModule, HeadVectors, SentenceEncoderModule)
}

Model = TypeVar("Model", bound=BaseModel, default=SentenceTransformer)


def load(
    path: str | Path | None = None,
    model_class: type[Model] = SentenceTransformer,  # type: ignore[assignment]
    **options: Any,
) -> Model:
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
    passed_on = ("model_kwargs", "processor_kwargs", "config_kwargs")
    groups = [options, *(options.get(name) or {} for name in passed_on)]
    if any("trust_remote_code" in group for group in groups):
        raise InputError(
            "load takes no trust_remote_code: it loads only folders that need no trust. "
            "If you trust this one, use sentence-transformers itself."
        )
    folder = storage.embedded_folder(SentenceEncoder.__name__) if path is None else Path(path)
    if not folder.is_dir():
        raise FolderError(f"{folder}: there is no such folder; expected a saved model.")
    if (folder / MODULES).is_file():
        model = _load_saved(folder, model_class, options)
    elif (folder / storage.CONFIG).is_file():
        encoder = SentenceEncoder.from_pretrained(folder)
        modules: list[nn.Module] = [SentenceEncoderModule(encoder)]
        if issubclass(model_class, MultiVectorEncoder):
            modules.append(HeadVectors(encoder.pooling.input_dim))
        model = model_class(modules=modules, **options)
    else:
        names = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise FolderError(
            f"{folder} has neither {MODULES} (sentence-transformers) nor {storage.CONFIG} "
            f"(genpool). It contains: {names}."
        )
    card: Any = model.model_card_data
    if card.model_name is None:  # mteb stores results by this name
        parts = ("genpool", "embedded") if path is None else Path(path).resolve().parts[-2:]
        card.model_name = "/".join(parts)
    return model


def _load_saved(folder: Path, model_class: type[Model], options: dict[str, Any]) -> Model:
    """Loads a folder that sentence-transformers saved."""
    _check_folder(folder)
    config = _read_json(folder / MODEL_CONFIG)[0] if (folder / MODEL_CONFIG).is_file() else {}
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


def _check_folder(folder: Path) -> None:
    """Raises FolderError for foreign modules, settings that lead to code, and pickles."""
    for source in (folder / MODULES, *sorted(folder.rglob(ROUTER))):
        for subfolder, module_type in _named_modules(source):
            if not (source.parent / subfolder).resolve().is_relative_to(folder.resolve()):
                raise FolderError(
                    f"{source} names the folder {subfolder!r}, which is outside of {folder}."
                )
            _check_type(module_type, source)
    _check_settings(folder)
    for path in sorted(folder.rglob("*_model*.bin")):
        # Where both exist, the safetensors are read; another name beside it could be a decoy.
        stem = "adapter_model" if path.name.startswith("adapter_") else "model"
        if not (path.parent / f"{stem}.safetensors").is_file():
            raise FolderError(
                f"{path} is a pickle, which could run code; expected {stem}.safetensors beside it. "
                "It was not opened. Ask for the model in safetensors format."
            )


def _read_json(path: Path) -> tuple[Any, list[tuple[str, Any]]]:
    """Returns the content of a JSON file, and the settings of all objects in it."""
    settings: list[tuple[str, Any]] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        settings.extend(pairs)
        return dict(pairs)

    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=collect), settings
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read as JSON: {error}") from None


def _named_modules(source: Path) -> list[tuple[str, str]]:
    """Returns folder and type of every module that modules.json or a router names."""
    content, _ = _read_json(source)
    try:
        if source.name == ROUTER:
            named = list(content["types"].items())
        else:
            named = [(entry["path"], entry["type"]) for entry in content]
    except (KeyError, TypeError, AttributeError):
        named = []
    if not named or not all(isinstance(text, str) for pair in named for text in pair):
        raise FolderError(
            f"{source} is damaged: expected the path and the type of each module, as strings."
        )
    return named


def _check_type(module_type: str, source: Path) -> None:
    if module_type in GENPOOL_MODULES:
        return
    if module_type.startswith(LIBRARY_PREFIX):
        try:
            cls = import_from_string(module_type)
        except (ImportError, ValueError) as error:
            raise FolderError(
                f"{source} names {module_type!r}, which does not exist: {error}"
            ) from None
        if isinstance(cls, type) and issubclass(cls, Module):
            return
    raise FolderError(
        f"{source} names a module of type {module_type!r}; expected a module of "
        f"sentence-transformers or one of {', '.join(GENPOOL_MODULES)}. Others could run any code "
        "and are not loaded here. If you trust the folder: "
        "SentenceTransformer(folder, trust_remote_code=True)."
    )


def _check_settings(folder: Path) -> None:
    """Refuses settings that make transformers import code or load kernels, however deep."""
    for path in sorted(folder.rglob("*config*.json")):
        for name, value in _read_json(path)[1]:
            if value and name in DANGEROUS and value not in DANGEROUS[name]:
                raise FolderError(
                    f'{path} has "{name}" ({str(value)[:80]}), which asks for code that is not '
                    "part of the libraries; expected a model that transformers knows itself."
                )
    for path in sorted(folder.rglob(TRANSFORMER_CONFIG)):
        config, _ = _read_json(path)
        unknown = set(config if isinstance(config, dict) else ()) - TRANSFORMER_SETTINGS
        if unknown:
            raise FolderError(
                f"{path} has the settings {', '.join(sorted(unknown))}, which are not needed and "
                f"not passed on; expected some of {', '.join(sorted(TRANSFORMER_SETTINGS))}."
            )

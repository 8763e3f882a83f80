"""Writing genpool's modules into a sentence-transformers folder, and reading them.

Only JSON and safetensors: a module whose weights are a pickle is refused, not opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from sentence_transformers.base.modules import Module

from genpool.errors import FolderError, InputError
from genpool.saving.storage import WEIGHTS
from genpool.tensors.meta import on_meta_device

MODEL_CONFIG = "config_sentence_transformers.json"
#: sentence-transformers compares this with the installed version before it loads any module
REQUIREMENT = {
    "specifier": ">=0.1.0",
    "reason": "modules of this model are part of genpool: "
    "load it with genpool.integrations.sentence_transformers.load",
}

AnyModule = TypeVar("AnyModule", bound=Module)


def write_weights(module: Module, folder: str) -> None:
    """Writes the weights of a module as safetensors, whatever format the caller prefers."""
    weights = {
        name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()
    }
    save_file(weights, Path(folder) / WEIGHTS, metadata={"format": "pt"})


def name_requirement(folder: str) -> None:
    """Adds genpool to the requirements of the model that a module's folder is part of.

    sentence-transformers reads them, but writes none itself. The model's file is written before its
    modules are saved, beside the first one or above the others.
    """
    for path in (Path(folder) / MODEL_CONFIG, Path(folder).parent / MODEL_CONFIG):
        if path.is_file():
            config = json.loads(path.read_text(encoding="utf-8"))
            config["requirements"] = {**config.get("requirements", {}), "genpool": REQUIREMENT}
            text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
            path.write_text(text, encoding="utf-8", newline="\n")
            return


def module_with_weights(
    make: Callable[[], AnyModule], weights: str | None, source: str
) -> AnyModule:
    """Returns the module that `make` makes, with the weights of a safetensors file.

    Sizes are compared before memory is allocated for any weights.
    """
    if weights is None:
        raise FolderError(
            f"{source} has no {WEIGHTS}; expected the weights there. A pickle (pytorch_model.bin) "
            "is never opened."
        )
    try:
        with on_meta_device():
            module = make()
    except (TypeError, InputError) as error:
        raise FolderError(f"{source}/config.json cannot be used: {error}") from error
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    try:
        with safe_open(weights, framework="pt") as file:
            names = list(file.keys())
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
            if shapes != expected:
                raise FolderError(
                    f"{weights} does not agree with config.json: it contains {shapes}, "
                    f"expected {expected}."
                )
            module.load_state_dict({name: file.get_tensor(name) for name in names}, assign=True)
    except (SafetensorError, OSError) as error:
        raise FolderError(f"{weights} is not a complete safetensors file: {error}") from error
    return module


def hub_arguments(**arguments: Any) -> dict[str, Any]:
    """Returns those arguments of sentence-transformers' `load` that locate a file."""
    names = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
    return {name: arguments[name] for name in names if name in arguments}

"""How genpool's modules are written into a sentence-transformers folder and read back.

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
#: sentence-transformers compares this with what is installed, before it loads any module
REQUIREMENT = {
    "specifier": ">=0.1.0",
    "reason": "modules of this model are part of genpool: "
    "load it with genpool.integrations.sentence_transformers.load",
}

AnyModule = TypeVar("AnyModule", bound=Module)


def write_weights(module: Module, folder: str) -> None:
    """The weights of a module as safetensors, whatever format the caller prefers."""
    weights = {name: each.detach().cpu().contiguous() for name, each in module.state_dict().items()}
    save_file(weights, Path(folder) / WEIGHTS, metadata={"format": "pt"})


def name_requirement(folder: str) -> None:
    """Adds genpool to the requirements of the model that a module's folder is part of.

    sentence-transformers reads them, but writes none itself. The model's own file is there before
    its modules are saved, beside the first one or above the others.
    """
    for path in (Path(folder) / MODEL_CONFIG, Path(folder).parent / MODEL_CONFIG):
        if path.is_file():
            config = json.loads(path.read_text(encoding="utf-8"))
            config["requirements"] = {**config.get("requirements", {}), "genpool": REQUIREMENT}
            text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
            path.write_text(text, encoding="utf-8")
            return


def module_with_weights(
    make: Callable[[], AnyModule], weights: str | None, where: str
) -> AnyModule:
    """The module that `make` makes, with the weights of a safetensors file.

    Sizes are compared before memory is taken for any weights.
    """
    if weights is None:
        raise FolderError(
            f"{where} has no {WEIGHTS}; expected the weights there. A pickle (pytorch_model.bin) "
            "is never opened."
        )
    try:
        with on_meta_device():
            module = make()
    except (TypeError, InputError) as error:
        raise FolderError(f"{where}/config.json cannot be used: {error}") from error
    expected = {name: tuple(each.shape) for name, each in module.state_dict().items()}
    try:
        with safe_open(weights, framework="pt") as file:
            names = list(file.keys())
            found = {name: tuple(file.get_slice(name).get_shape()) for name in names}
            if found != expected:
                raise FolderError(
                    f"{weights} does not agree with config.json: it holds {found}, "
                    f"expected {expected}."
                )
            module.load_state_dict({name: file.get_tensor(name) for name in names}, assign=True)
    except (SafetensorError, OSError) as error:
        raise FolderError(f"{weights} is not a whole safetensors file: {error}") from error
    return module


def hub_arguments(**given: Any) -> dict[str, Any]:
    """Of all that sentence-transformers passes to `load`, what finding a file needs."""
    names = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
    return {name: given[name] for name in names if name in given}

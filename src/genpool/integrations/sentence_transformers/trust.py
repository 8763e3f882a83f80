"""Checking the modules that a sentence-transformers folder names: nothing in it is run as code.

sentence-transformers asks for trust_remote_code=True where a folder names a module of another
package, and would then run any other code that the folder asks for. Here the names are compared
with a list instead, and no trust is needed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from sentence_transformers.base.modules import Module, Transformer
from sentence_transformers.util import import_from_string

from genpool.errors import FolderError

MODULES, ROUTER = "modules.json", "router_config.json"
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


def check_folder(folder: Path, allowed: Collection[str]) -> None:
    """Raises FolderError unless every module is sentence-transformers' or one of `allowed`."""
    for subfolder, module_type, source in _named_modules(folder):
        path = folder if not subfolder else folder / subfolder
        if not path.resolve().is_relative_to(folder.resolve()):
            raise FolderError(
                f"{source} names the folder {subfolder!r}, which is outside of {folder}."
            )
        _check_type(module_type, source, allowed)
    _check_settings(folder)
    _check_no_pickle(folder)


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file; raises FolderError where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read as JSON: {error}") from None


def _named_modules(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yields folder, type, and the file that names them, of every module; those of routers too."""
    source = folder / MODULES
    entries = read_json(source)
    if not isinstance(entries, list) or not entries:
        raise FolderError(f"{source} is damaged: expected a list of modules.")
    for entry in entries:
        values = entry if isinstance(entry, dict) else {}
        subfolder, module_type = values.get("path"), values.get("type")
        if not isinstance(subfolder, str) or not isinstance(module_type, str):
            raise FolderError(
                f"{source} is damaged: {entry!r} has no path or no type (both strings)."
            )
        yield subfolder, module_type, source
    for router in sorted(folder.rglob(ROUTER)):
        config = read_json(router)
        types = config.get("types") if isinstance(config, dict) else None
        if not isinstance(types, dict) or not all(isinstance(name, str) for name in types.values()):
            raise FolderError(f"{router} is damaged: expected types by the folders of modules.")
        parent = router.parent.relative_to(folder)
        for subfolder, module_type in types.items():
            yield str(parent / subfolder), module_type, router


def _check_type(module_type: str, source: Path, allowed: Collection[str]) -> None:
    if module_type in allowed:
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
        f"sentence-transformers or one of {', '.join(allowed)}. Others could run any code and are "
        "not loaded here. If you trust the folder: "
        "SentenceTransformer(folder, trust_remote_code=True)."
    )


def _check_settings(folder: Path) -> None:
    """Refuses settings that make transformers import code or load kernels, however deep."""
    for path in sorted(folder.rglob("*config*.json")):
        for name, value in _nested_settings(read_json(path)):
            if not value or name not in DANGEROUS:
                continue
            if DANGEROUS[name] and value in DANGEROUS[name]:
                continue
            raise FolderError(
                f'{path} has "{name}" ({str(value)[:80]}), which asks for code that is not part of '
                "the libraries; expected a model that transformers knows itself."
            )
    for path in sorted(folder.rglob(TRANSFORMER_CONFIG)):
        unknown = set(_as_dict(read_json(path))) - TRANSFORMER_SETTINGS
        if unknown:
            raise FolderError(
                f"{path} has the settings {', '.join(sorted(unknown))}, which are not needed and "
                f"not passed on; expected some of {', '.join(sorted(TRANSFORMER_SETTINGS))}."
            )


def _nested_settings(content: Any) -> Iterator[tuple[str, Any]]:
    """Yields the names and values of all settings of a JSON file."""
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part.items()
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _as_dict(content: Any) -> dict[str, Any]:
    return content if isinstance(content, dict) else {}


def _check_no_pickle(folder: Path) -> None:
    for path in sorted(folder.rglob("*_model*.bin")):
        # Where both exist, the safetensors are read; another name beside it could be a decoy.
        stem = "adapter_model" if path.name.startswith("adapter_") else "model"
        if not (path.parent / f"{stem}.safetensors").is_file():
            raise FolderError(
                f"{path} is a pickle, which could run code; expected {stem}.safetensors beside it. "
                "It was not opened. Ask for the model in safetensors format."
            )

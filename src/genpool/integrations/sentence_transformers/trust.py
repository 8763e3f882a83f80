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

from sentence_transformers.base.modules import Module
from sentence_transformers.util import import_from_string

from genpool.errors import FolderError

MODULES, ROUTER = "modules.json", "router_config.json"
#: prefix of the modules that sentence-transformers itself contains
LIBRARY_PREFIX = "sentence_transformers."


def check_folder(folder: Path, allowed: Collection[str]) -> None:
    """Raises FolderError unless every module is sentence-transformers' or one of `allowed`."""
    for subfolder, module_type, source in _named_modules(folder):
        path = folder if not subfolder else folder / subfolder
        if not path.resolve().is_relative_to(folder.resolve()):
            raise FolderError(
                f"{source} names the folder {subfolder!r}, which is outside of {folder}."
            )
        _check_type(module_type, source, allowed)
        _check_no_code(path)
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


def _check_no_code(folder: Path) -> None:
    """Refuses an auto_map, whose code transformers would import from a trusted folder."""
    for path in sorted(folder.glob("*config*.json")):
        config = read_json(path)
        if isinstance(config, dict) and config.get("auto_map"):
            raise FolderError(
                f'{path} has an "auto_map" ({config["auto_map"]}), which asks for code of the '
                "folder to be run; expected a model that transformers knows itself."
            )


def _check_no_pickle(folder: Path) -> None:
    for path in sorted(folder.rglob("*_model*.bin")):
        # Where both exist, the safetensors are read.
        stem = "adapter_model" if path.name.startswith("adapter_") else "model"
        if not any(path.parent.glob(f"{stem}*.safetensors")):
            raise FolderError(
                f"{path} is a pickle, which could run code; expected safetensors beside it. "
                "It was not opened. Ask for the model in safetensors format."
            )

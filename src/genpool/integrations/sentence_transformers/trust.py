"""What a sentence-transformers folder may name: nothing in it is ever run as code.

sentence-transformers asks for trust_remote_code=True where a folder names a module of another
package, and with it would run whatever else the folder asks for. Here the names are compared with
a list instead, and the question is never asked.
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
THEIRS = "sentence_transformers."


def check_folder(folder: Path, own: Collection[str]) -> None:
    """Raises FolderError unless every module is sentence-transformers' or one of `own`."""
    for place, kind, source in _named_modules(folder):
        inside = folder if not place else folder / place
        if not inside.resolve().is_relative_to(folder.resolve()):
            raise FolderError(f"{source} names the folder {place!r}, which is outside of {folder}.")
        _check_type(kind, source, own)
        _check_no_code(inside)
    _check_no_pickle(folder)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read as JSON: {error}") from None


def _named_modules(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Folder, type, and the file that names them, of every module; those of routers too."""
    source = folder / MODULES
    entries = read_json(source)
    if not isinstance(entries, list) or not entries:
        raise FolderError(f"{source} is damaged: expected a list of modules.")
    for entry in entries:
        place, kind = (entry.get("path"), entry.get("type")) if isinstance(entry, dict) else (0, 0)
        if not isinstance(place, str) or not isinstance(kind, str):
            raise FolderError(f"{source} is damaged: {entry!r} has no path or no type (both text).")
        yield place, kind, source
    for router in sorted(folder.rglob(ROUTER)):
        config = read_json(router)
        types = config.get("types") if isinstance(config, dict) else None
        if not isinstance(types, dict) or not all(isinstance(each, str) for each in types.values()):
            raise FolderError(f"{router} is damaged: expected types by the folders of modules.")
        above = router.parent.relative_to(folder)
        yield from ((str(above / place), kind, router) for place, kind in types.items())


def _check_type(kind: str, source: Path, own: Collection[str]) -> None:
    if kind in own:
        return
    if kind.startswith(THEIRS):
        try:
            found = import_from_string(kind)
        except (ImportError, ValueError) as error:
            raise FolderError(f"{source} names {kind!r}, which is not there: {error}") from None
        if isinstance(found, type) and issubclass(found, Module):
            return
    raise FolderError(
        f"{source} names a module of type {kind!r}; expected a module of sentence-transformers or "
        f"one of {', '.join(own)}. Others could run any code and are not loaded here. If you trust "
        "the folder: SentenceTransformer(folder, trust_remote_code=True)."
    )


def _check_no_code(folder: Path) -> None:
    """transformers would import what auto_map names, if it were trusted; here it is refused."""
    for path in sorted(folder.glob("*config*.json")):
        config = read_json(path)
        if isinstance(config, dict) and config.get("auto_map"):
            raise FolderError(
                f'{path} has an "auto_map" ({config["auto_map"]}), which asks for code of the '
                "folder to be run; expected a model that transformers knows itself."
            )


def _check_no_pickle(folder: Path) -> None:
    for path in sorted(folder.rglob("*_model*.bin")):
        # Where both are there, the safetensors are read.
        twin = "adapter_model" if path.name.startswith("adapter_") else "model"
        if not any(path.parent.glob(f"{twin}*.safetensors")):
            raise FolderError(
                f"{path} is a pickle, which could run code; expected safetensors beside it. "
                "It was not opened. Ask for the model in safetensors format."
            )

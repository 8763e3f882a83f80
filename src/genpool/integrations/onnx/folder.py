"""The exported folder: how it takes its place, and how its settings are read.

    config.json      format, kind, and what is needed to make numbers from text
    model.onnx       the graph (above a gigabyte, its weights are in model.onnx.data)
    tokenizer.json   rules and vocabulary
    README.md        what it is and how to run it

Only JSON and the graph are read, and a graph is a description: opening the folder runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from genpool.disk.folders import atomic_folder, recover
from genpool.errors import FolderError
from genpool.integrations.onnx.session import GRAPH
from genpool.saving.storage import CARD, CONFIG, FORMAT, ONNX_FORMAT, TOKENIZER

EXPORT_VERSION = 1
OWN_FILES = (CONFIG, GRAPH, f"{GRAPH}.data", TOKENIZER, CARD)


def new_folder(path: str | Path) -> AbstractContextManager[Path]:
    """Gives an empty folder beside `path` to write to; at the end it takes the place of `path`."""
    return atomic_folder(path, "the export", _check_replaced, OWN_FILES)


def write_config(folder: Path, kind: str, more: Mapping[str, Any]) -> None:
    """config.json; model_type is what other readers of such files show of a kind unknown to them"""
    config = {
        "format": ONNX_FORMAT,
        "format_version": EXPORT_VERSION,
        "model_type": f"ONNX graph of a {kind}, exported by genpool",
        "kind": kind,
        **more,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8")


def read_config(path: str | Path, kind: str) -> dict[str, Any]:
    """The config of an export of this kind; any other folder is answered with what it is."""
    folder = Path(path)
    expected = f"expected the ONNX export of a {kind}"
    with suppress(OSError):
        recover(folder.resolve())
    if not folder.is_dir():
        raise FolderError(f"{folder}: there is no such folder; {expected}.")
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = ", ".join(sorted(each.name for each in folder.iterdir())[:8]) or "nothing"
        raise FolderError(f"{folder} has no {CONFIG}; {expected}. It has: {there}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{folder / CONFIG} cannot be read: {error}") from None
    found = config if isinstance(config, dict) else {}
    if found.get("format") == FORMAT:
        raise FolderError(
            f"{folder} holds a {found.get('kind')} saved by genpool; {expected}. Export it first: "
            f"genpool export {folder} OUT."
        )
    if found.get("format") != ONNX_FORMAT:
        kind_found = found.get("model_type", "unknown")
        raise FolderError(f"{folder} is of another kind (model type: {kind_found}); {expected}.")
    version = found.get("format_version")
    if version != EXPORT_VERSION:
        raise FolderError(
            f"{folder / CONFIG} has format version {version!r}; this genpool reads "
            f"{EXPORT_VERSION}. A newer genpool wrote it: pip install --upgrade genpool."
        )
    if found.get("kind") != kind:
        raise FolderError(f"{folder} holds the graph of a {found.get('kind')}; {expected}.")
    return found


def require_files(folder: Path, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.")


def _check_replaced(target: Path) -> None:
    """Only an earlier export may be written over."""
    with suppress(OSError, ValueError, AttributeError):
        config = json.loads((target / CONFIG).read_text(encoding="utf-8"))
        if config.get("format") == ONNX_FORMAT:
            return
    raise FolderError(
        f"{target} holds something that is no ONNX export, which exporting would replace. Choose a "
        "new or empty folder."
    )

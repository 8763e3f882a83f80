"""The exported folder: how it is replaced, and how its settings are read.

    config.json      format, kind, and what is needed to turn text into ids
    model.onnx       the graph (above a gigabyte, its weights are in model.onnx.data)
    tokenizer.json   rules and vocabulary
    README.md        what it is and how to run it

Only JSON and the graph are read, and a graph is data: opening the folder runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from genpool.disk.atomic import atomic_folder, recover, require_version
from genpool.errors import FolderError
from genpool.integrations.onnx.session import ONNX_FILE
from genpool.saving.storage import CARD, CONFIG, FORMAT, ONNX_FORMAT, TOKENIZER

EXPORT_VERSION = 1
#: the files that a new export replaces; others in the folder stay
EXPORTED_FILES = (CONFIG, ONNX_FILE, f"{ONNX_FILE}.data", TOKENIZER, CARD)


def new_folder(path: str | Path) -> AbstractContextManager[Path]:
    """Yields an empty folder beside `path` to write to; at the end of the block it replaces it."""
    return atomic_folder(path, "the export", _check_replaced, EXPORTED_FILES)


def write_config(folder: Path, kind: str, settings: Mapping[str, Any]) -> None:
    """Writes config.json; other libraries show its model_type for a kind unknown to them."""
    config = {
        "format": ONNX_FORMAT,
        "format_version": EXPORT_VERSION,
        "model_type": f"ONNX graph of a {kind}, exported by genpool",
        "kind": kind,
        **settings,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8", newline="\n")


def read_config(path: str | Path, kind: str) -> dict[str, Any]:
    """Returns the config of an export of this kind.

    Raises:
        FolderError: the folder is missing, incomplete, or something else; the error says what.
    """
    folder = Path(path)
    expected = f"expected the ONNX export of a {kind}"
    with suppress(OSError):
        recover(folder.resolve())
    if not folder.is_dir():
        raise FolderError(f"{folder}: there is no such folder; {expected}.")
    try:
        content = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        names = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise FolderError(f"{folder} has no {CONFIG}; {expected}. It contains: {names}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{folder / CONFIG} cannot be read: {error}") from None
    config = content if isinstance(content, dict) else {}
    if config.get("format") == FORMAT:
        raise FolderError(
            f"{folder} contains a {config.get('kind')} saved by genpool; {expected}. Export it "
            f"first: genpool export {folder} OUT."
        )
    if config.get("format") != ONNX_FORMAT:
        model_type = config.get("model_type", "unknown")
        raise FolderError(f"{folder} is of another kind (model type: {model_type}); {expected}.")
    require_version(config.get("format_version"), EXPORT_VERSION, folder / CONFIG)
    if config.get("kind") != kind:
        raise FolderError(
            f"{folder} contains the graph of a {config.get('kind')}; {expected}. Run it with "
            f"onnxruntime: {folder / 'README.md'} lists its inputs."
        )
    return config


def require_files(folder: Path, names: tuple[str, ...]) -> None:
    """Raises FolderError where files are missing."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.")


def _check_replaced(target: Path) -> None:
    """Only an earlier export may be overwritten."""
    with suppress(OSError, ValueError, AttributeError):
        config = json.loads((target / CONFIG).read_text(encoding="utf-8"))
        if config.get("format") == ONNX_FORMAT:
            return
    raise FolderError(
        f"{target} contains something that is no ONNX export, which exporting would replace. "
        "Choose a new or empty folder."
    )

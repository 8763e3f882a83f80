"""The saved folder: what is in it, how it is written, and what is checked before it is read.

    config.json         format, kind of model, settings, labels, characters
    model.safetensors   the weights
    tokenizer.json      rules and vocabulary, for the `tokenizers` library
    README.md           the model card

Only JSON and safetensors are read: opening a stranger's folder runs none of its code. Sizes are
compared before any memory is taken for weights.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from genpool.disk.folders import atomic_folder, recover, require_version
from genpool.errors import FolderError
from genpool.saving.quantization import dequantize_weights, scale_shapes

#: version 2 added 8-bit weights; a folder without them is still written as version 1
FORMAT, FORMAT_VERSION, COMPACT_VERSION = "genpool", 1, 2
#: what `genpool export` writes, which is no model to load here
ONNX_FORMAT = "genpool-onnx"
CONFIG, WEIGHTS, TOKENIZER, CARD = "config.json", "model.safetensors", "tokenizer.json", "README.md"
OWN_FILES = (CONFIG, WEIGHTS, TOKENIZER, CARD)
FLOATING = ("F16", "BF16", "F32", "F64")
INTEGERS = "8-bit integers"


@dataclass(frozen=True)
class SavedFolder:
    """A folder whose files are all there and can be read; the weights are still on disk."""

    path: Path
    config: dict[str, Any]
    tokenizer: tokenizers.Tokenizer
    shapes: dict[str, tuple[int, ...]]
    kinds: dict[str, str]

    def load_weights(self, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
        """The weights, once their names and sizes are those that the settings call for."""
        compact = self.config["format_version"] == COMPACT_VERSION
        whole = dict(expected)
        if compact:
            expected = whole | scale_shapes(whole)
        problems = [f"{name} is missing" for name in expected if name not in self.shapes]
        problems += [f"{name} is not part of it" for name in self.shapes if name not in expected]
        problems += [
            f"{name} is {self.shapes[name]}, the settings say {shape}"
            for name, shape in expected.items()
            if name in self.shapes and self.shapes[name] != shape
        ]
        problems += [
            f"{name} holds {kind}, expected {_expected_kind(name, whole, compact)}"
            for name, kind in self.kinds.items()
            if (kind == "I8") != (_expected_kind(name, whole, compact) == INTEGERS)
            or kind not in (*FLOATING, "I8")
        ]
        if problems:
            shown = "; ".join(problems[:5]) + (" ..." if len(problems) > 5 else "")
            raise FolderError(
                f"{self.path / WEIGHTS} does not agree with {CONFIG} and {TOKENIZER} "
                f"({len(problems)} differences): {shown}. Were files of two models mixed?"
            )
        with safe_open(self.path / WEIGHTS, framework="pt") as weights:
            found = {name: weights.get_tensor(name) for name in expected}
        return dequantize_weights(found) if compact else found


def _expected_kind(name: str, whole: Mapping[str, tuple[int, ...]], compact: bool) -> str:
    return INTEGERS if compact and len(whole.get(name, ())) > 1 else "floating-point numbers"


def write_folder(
    path: str | Path,
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    tokenizer: tokenizers.Tokenizer,
    card: str,
) -> None:
    """Writes a model folder; one that is there already stays whole until the new one is complete.

    Files that somebody else put into it stay.
    """
    with atomic_folder(path, "the model", _check_replaced, OWN_FILES) as fresh:
        text = json.dumps(dict(config), indent=2, ensure_ascii=False)
        (fresh / CONFIG).write_text(text + "\n", encoding="utf-8")
        # safetensors wants every tensor whole and on its own memory.
        whole = {name: each.detach().cpu().contiguous() for name, each in weights.items()}
        try:
            save_file(whole, fresh / WEIGHTS, metadata={"format": "pt"})
        except SafetensorError as error:  # a full disk is one of its own errors
            raise OSError(str(error)) from error
        shutil.copymode(fresh / CONFIG, fresh / WEIGHTS)  # safetensors keeps it from other users
        (fresh / TOKENIZER).write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
        (fresh / CARD).write_text(card, encoding="utf-8")


def read_folder(path: str | Path) -> SavedFolder:
    """Checks a folder and reads all but its weights."""
    folder = Path(path)
    try:
        recover(folder.resolve())
        if not folder.is_dir():
            raise FolderError(
                f"{folder}: there is no such folder; expected a model saved by genpool."
            )
        config = _read_config(folder)
        _require_files(folder)
        shapes, kinds = _read_sizes(folder / WEIGHTS)
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error}") from error
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # the library raises bare Exception for every fault of the file
        raise FolderError(f"{folder / TOKENIZER} cannot be read: {error}") from None
    return SavedFolder(folder, config, tokenizer, shapes, kinds)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        there = ", ".join(sorted(each.name for each in folder.iterdir())[:8]) or "nothing"
        hint = f" Did you mean {folder / 'best'}?" if (folder / "best" / CONFIG).is_file() else ""
        raise FolderError(
            f"{folder} has no {CONFIG}, so it is not a genpool model. It has: {there}.{hint}"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{path} is not JSON: {error}") from None
    if isinstance(config, dict) and config.get("format") == ONNX_FORMAT:
        raise FolderError(
            f"{folder} holds the ONNX graph of a {config.get('kind')}; expected the model itself. "
            "A graph encodes with `genpool encode --runtime onnx`, or with "
            "genpool.integrations.onnx.OnnxEncoder."
        )
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        kind = config.get("model_type", "unknown") if isinstance(config, dict) else "unknown"
        raise FolderError(
            f"{path} is not of a genpool model (model type: {kind}); expected "
            f'"format": "{FORMAT}". Was the folder saved by another library?'
        )
    require_version(config.get("format_version"), COMPACT_VERSION, path)
    return config


def _require_files(folder: Path) -> None:
    missing = [name for name in (WEIGHTS, TOKENIZER) if not (folder / name).is_file()]
    if not missing:
        return
    pickles = [
        each.name for each in folder.iterdir() if each.suffix in (".bin", ".pt", ".pkl", ".pth")
    ]
    hint = f" {pickles[0]} is a pickle, which genpool never opens." if pickles else ""
    raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.{hint}")


def _read_sizes(path: Path) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Shapes and number types of the tensors, by name; only the head of the file is read."""
    try:
        with safe_open(path, framework="pt") as weights:
            slices = {name: weights.get_slice(name) for name in weights.keys()}  # noqa: SIM118
            shapes = {name: tuple(each.get_shape()) for name, each in slices.items()}
            return shapes, {name: each.get_dtype() for name, each in slices.items()}
    except (SafetensorError, OSError) as error:
        with path.open("rb") as file:
            start = file.read(4)
        if start[:1] == b"\x80" or start == b"PK\x03\x04":
            raise FolderError(
                f"{path} holds a pickle, which could run code, in place of safetensors; it was not "
                "opened. Ask for the model in safetensors format."
            ) from None
        raise FolderError(f"{path} is not a whole safetensors file: {error}") from None


def _check_replaced(target: Path) -> None:
    """Only an earlier genpool model may be written over."""
    try:
        _read_config(target)
    except FolderError as error:
        raise FolderError(
            f"{target} holds something else, which saving would replace ({error}) "
            "Choose a new or empty folder."
        ) from None

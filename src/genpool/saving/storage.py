"""The saved folder: what is in it, how it is written, and what is checked before it is read.

    config.json         format, kind of model, settings, labels, characters, checksums
    model.safetensors   the weights
    tokenizer.json      rules and vocabulary, for the `tokenizers` library
    README.md           the model card

Only JSON and safetensors are read: opening a stranger's folder runs none of its code. Sizes are
compared before any memory is taken for weights.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tokenizers
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from genpool.disk.atomic import atomic_folder, read_consistently, require_version
from genpool.errors import ConfigError, FolderError
from genpool.saving.weights_file import (
    FLOATING,
    PACKED_INTEGERS,
    WeightsFile,
    dequantize_weights,
    file_checksum,
    first_not_finite,
    flush_subnormal,
    stored_tensors,
)
from genpool.text.stored_tokenizer import StoredTokenizer, read_tokenizer

FORMAT, FORMAT_VERSION = "genpool", 1
#: how the weights are stored: as they are, in 8 bits, or in 8 bits with tables in 4 bits
FLOAT, INT8, INT4_TABLES = "float", "int8", "int4-tables"
PRECISIONS = (FLOAT, INT8, INT4_TABLES)
#: where config.json has the checksums of the files by their names; its own is that of its other
#: entries, in a fixed form
CHECKSUMS = "checksums"
#: what `genpool export` writes, which is no model to load here
ONNX_FORMAT = "genpool-onnx"
CONFIG, WEIGHTS, TOKENIZER, CARD = "config.json", "model.safetensors", "tokenizer.json", "README.md"
OWN_FILES = (CONFIG, WEIGHTS, TOKENIZER, CARD)

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class SavedFolder:
    """A folder whose files are all there and can be read; the weights are still on disk.

    Attributes:
        path: the folder.
        config: the content of config.json.
        tokenizer: the content of tokenizer.json.
        tokenizer_checksum: the checksum of tokenizer.json.
        weights: the header of model.safetensors.
        mmap: leave the weights in the file, mapped into memory.
    """

    path: Path
    config: dict[str, Any]
    tokenizer: StoredTokenizer
    tokenizer_checksum: str
    weights: WeightsFile
    mmap: bool

    @property
    def kind(self) -> str:
        """The name of the model's class; any other text if the folder is damaged."""
        return str(self.config.get("kind"))

    def load_weights(self, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
        """Returns the weights, if names and shapes are those that the settings lead to.

        Raises:
            FolderError: a tensor is missing, unknown, of another size or type, or not finite, or
                the checksum of a file is not the one in config.json.
        """
        self._require_tensors(expected)
        weights, checksum = self.weights.map() if self.mmap else self.weights.read()
        actual = {
            CONFIG: config_checksum(self.config),
            WEIGHTS: checksum,
            TOKENIZER: self.tokenizer_checksum,
        }
        require_checksums(self.path, self.config, actual)
        damaged = first_not_finite(weights)
        if damaged is not None:
            raise FolderError(
                f"{self.path / WEIGHTS} cannot be used: its tensor {damaged} contains NaN or "
                "infinity. The file is damaged, or training diverged before it was saved."
            )
        return flush_subnormal(
            weights if self._precision == FLOAT else dequantize_weights(weights, expected)
        )

    @property
    def _precision(self) -> str:
        precision = self.config.get("precision")
        if precision not in PRECISIONS:
            raise FolderError(
                f"{self.path / CONFIG} is damaged: precision is {precision!r}, expected one of "
                f"{', '.join(PRECISIONS)}."
            )
        return str(precision)

    def _require_tensors(self, settings: Mapping[str, tuple[int, ...]]) -> None:
        precision = self._precision
        expected = stored_tensors(settings, precision != FLOAT, precision == INT4_TABLES)
        shapes, dtypes = self.weights.shapes, self.weights.dtypes
        problems = [f"{name} is missing" for name in expected if name not in shapes]
        problems += [f"{name} is not part of it" for name in shapes if name not in expected]
        for name, (shape, types) in expected.items():
            if name not in shapes:
                continue
            if shapes[name] != shape:
                problems.append(f"{name} is {shapes[name]}, the settings say {shape}")
            if dtypes[name] not in types:
                bits = 4 if types == (PACKED_INTEGERS,) else 8
                values = "floating-point values" if types == FLOATING else f"{bits}-bit integers"
                problems.append(f"{name} contains {dtypes[name]}, expected {values}")
        if problems:
            shown = "; ".join(problems[:5]) + (" ..." if len(problems) > 5 else "")
            raise FolderError(
                f"{self.path / WEIGHTS} does not agree with {CONFIG} and {TOKENIZER} "
                f"({len(problems)} differences): {shown}. Were files of two models mixed?"
            )


def config_checksum(config: Mapping[str, Any]) -> str:
    """Returns the checksum of all entries but the checksums."""
    entries = {name: value for name, value in config.items() if name != CHECKSUMS}
    plain = json.loads(json.dumps(entries))  # as it is read: tuples are lists, all keys are strings
    return file_checksum(json.dumps(plain, sort_keys=True).encode())


def require_checksums(folder: Path, config: Mapping[str, Any], actual: Mapping[str, str]) -> None:
    """Raises FolderError if a file is not the one that was saved with config.json.

    `actual` has the checksums of the files that were read, by name.
    """
    source = folder / CONFIG
    expected = config.get(CHECKSUMS, {})
    if not isinstance(expected, dict):
        kind = type(expected).__name__
        raise FolderError(f"{source} is damaged: {CHECKSUMS} is {kind}, expected dict.")
    for name, checksum in expected.items():
        if name in actual and actual[name] != checksum:
            pair = f"{folder / name} and {source} do not belong together"
            problem = f"{source} was changed" if name == source.name else pair
            raise FolderError(
                f"{problem}: the checksum of {name} is {actual[name]}, saved was {checksum}. "
                "The folder was damaged, or files of two models were mixed: copy it again. If you "
                f'changed it yourself, remove "{CHECKSUMS}" from {source.name}.'
            )


def write_folder(
    path: str | Path,
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    tokenizer: tokenizers.Tokenizer,
    card: str,
) -> None:
    """Writes a model folder; one that is there already is replaced when the new one is complete.

    Files that somebody else put into it are kept.

    Raises:
        FolderError: there is something other than a model at `path`, or it cannot be written.
    """
    with atomic_folder(path, "the model", _require_model, OWN_FILES) as fresh:
        _write_text(fresh / CARD, card)
        # Readable, unless it was asked for little space: a line of its own takes 8 bytes a word.
        is_small = config["precision"] == INT4_TABLES
        tokenizer_text = tokenizer.to_str(pretty=not is_small)
        _write_text(fresh / TOKENIZER, tokenizer_text)
        # safetensors needs tensors that are contiguous and share no memory.
        separate = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        try:
            save_file(separate, fresh / WEIGHTS, metadata={"format": "pt"})
        except SafetensorError as error:  # which a full disk is, too
            raise OSError(str(error)) from error
        shutil.copymode(fresh / CARD, fresh / WEIGHTS)  # safetensors hides it from other users
        checksums = {
            CONFIG: config_checksum(config),
            WEIGHTS: file_checksum((fresh / WEIGHTS).read_bytes()),
            TOKENIZER: file_checksum(tokenizer_text.encode()),
        }
        text = json.dumps({**config, CHECKSUMS: checksums}, indent=2, ensure_ascii=False)
        _write_text(fresh / CONFIG, text + "\n")


def read_folder(
    path: str | Path, load: Callable[[SavedFolder], Loaded], mmap: bool = False
) -> Loaded:
    """Returns `load(folder)` of one version of a folder, even while it is being replaced.

    Args:
        path: the folder.
        load: makes something of the folder, whose weights are read only when it asks for them. It
            is called again if the folder was replaced in the meantime.
        mmap: leave the weights in the file, mapped into memory. Default: False.

    Raises:
        FolderError: the folder is missing, incomplete, damaged, or of another kind.
    """
    folder = Path(path)
    try:
        return read_consistently(folder, lambda: load(_open_folder(folder, mmap)))
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error}") from error


def _open_folder(folder: Path, mmap: bool) -> SavedFolder:
    """Checks a folder and reads all but its weights."""
    if not folder.is_dir():
        raise FolderError(f"{folder}: there is no such folder; expected a model saved by genpool.")
    config = _read_config(folder)
    _require_files(folder)
    weights = WeightsFile.open(folder / WEIGHTS)
    tokenizer, checksum = read_tokenizer_file(folder / TOKENIZER)
    return SavedFolder(folder, config, tokenizer, checksum, weights, mmap)


def read_tokenizer_file(path: Path) -> tuple[StoredTokenizer, str]:
    """Returns the content of a tokenizer.json, and the checksum of the file.

    Raises:
        FolderError: it contains other parts than genpool writes.
    """
    content = path.read_bytes()
    try:
        return read_tokenizer(content), file_checksum(content)
    except ConfigError as error:
        raise FolderError(f"{path} cannot be used: {error}") from None


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        content = ", ".join(sorted(file.name for file in folder.iterdir())[:8]) or "nothing"
        hint = f" Did you mean {folder / 'best'}?" if (folder / "best" / CONFIG).is_file() else ""
        raise FolderError(
            f"{folder} has no {CONFIG}, so it is not a genpool model. It has: {content}.{hint}"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{path} is not JSON: {error}") from None
    if isinstance(config, dict) and config.get("format") == ONNX_FORMAT:
        raise FolderError(
            f"{folder} contains the ONNX graph of a {config.get('kind')}; expected the model "
            "itself. A graph encodes with `genpool encode --runtime onnx`, or with "
            "genpool.integrations.onnx.OnnxEncoder."
        )
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        kind = config.get("model_type", "unknown") if isinstance(config, dict) else "unknown"
        raise FolderError(
            f"{path} is not of a genpool model (model type: {kind}); expected "
            f'"format": "{FORMAT}". Was the folder saved by another library?'
        )
    require_version(config.get("format_version"), FORMAT_VERSION, path)
    return config


def _require_files(folder: Path) -> None:
    missing = [name for name in (WEIGHTS, TOKENIZER) if not (folder / name).is_file()]
    if not missing:
        return
    pickles = [
        file.name for file in folder.iterdir() if file.suffix in (".bin", ".pt", ".pkl", ".pth")
    ]
    hint = f" {pickles[0]} is a pickle, which genpool never opens." if pickles else ""
    raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.{hint}")


def _require_model(target: Path) -> None:
    """Only an earlier genpool model may be replaced."""
    try:
        _read_config(target)
    except FolderError as error:
        raise FolderError(
            f"{target} contains something else, which saving would replace ({error}) "
            "Choose a new or empty folder."
        ) from None


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")  # the same bytes on every system

"""The saved folder: what is in it, how it is written, and what is checked before it is read.

    config.json         format, kind of model, settings, labels, characters, checksums
    model.safetensors   the weights
    tokenizer.json      rules and vocabulary, for the `tokenizers` library
    README.md           the model card

Only JSON and safetensors are read: opening a stranger's folder runs none of its code. Sizes are
compared before any memory is taken for weights.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import tokenizers
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from genpool.disk.atomic import read_consistently
from genpool.disk.folder_format import FolderFormat, data_checksum, file_checksum, write_text
from genpool.errors import ConfigError, FolderError
from genpool.saving.weights_file import (
    WeightsFile,
    dequantize_weights,
    first_not_finite,
    flush_subnormal,
    quantize_weights,
)
from genpool.text.tokenizer import StoredTokenizer, read_tokenizer

#: how the weights are stored: as they are, in 8 bits, or in 8 bits with tables in 4 bits
FLOAT, INT8, INT4_TABLES = "float", "int8", "int4-tables"
PRECISIONS = (FLOAT, INT8, INT4_TABLES)
#: what `genpool export` writes, which is no model to load here
ONNX_FORMAT = "genpool-onnx"
CONFIG, WEIGHTS, TOKENIZER, CARD = "config.json", "model.safetensors", "tokenizer.json", "README.md"
#: the models inside the package, by their kind
EMBEDDED = {"SentenceEncoder": "encoder", "PairClassifier": "nli"}
#: the entries of config.json that a model is made of, and their types
TYPES = {"settings": dict, "characters": str, "labels": list, "notes": dict, "plugins": list}
#: sections of the settings with options of modules; the integers of the first two are always sizes
#: of tensors (those of characters may be without use), but for the number of layers
SECTIONS, LAYERS = ("encoder", "pooling", "embedding", "classifier"), "layers"

Loaded = TypeVar("Loaded")


def _hint(folder: Path, content: Mapping[str, Any]) -> str:
    """Returns what a folder that is not of a model may be."""
    if (folder / "best" / CONFIG).is_file():
        return f" Did you mean {folder / 'best'}?"
    if content.get("format") == ONNX_FORMAT:
        return (
            f" It contains the ONNX graph of a {content.get('kind')}, which encodes with `genpool "
            "encode --runtime onnx`, or with genpool.integrations.onnx.OnnxEncoder."
        )
    kind = content.get("model_type")
    return f" Was it saved by another library (model type: {kind})?" if kind else ""


MODEL = FolderFormat("genpool", "a genpool model", (CONFIG, WEIGHTS, TOKENIZER, CARD), _hint)


class SavedFolder:
    """A folder whose files are all there and can be read; the weights are still on disk."""

    def __init__(self, path: Path, mmap: bool = False) -> None:
        self.path, self.mmap = path, mmap
        self.config = MODEL.read(path)
        try:
            MODEL.require_files(path, (WEIGHTS, TOKENIZER))
        except FolderError as error:
            for file in path.iterdir():
                if file.suffix in (".bin", ".pt", ".pkl", ".pth"):
                    hint = f"{file.name} is a pickle, which genpool never opens."
                    raise FolderError(f"{error} {hint}") from None
            raise
        self.weights = WeightsFile.open(path / WEIGHTS)
        self.tokenizer, self.tokenizer_checksum = read_tokenizer_file(path)

    @property
    def kind(self) -> str:
        """The name of the model's class, or any other text."""
        return str(self.config.get("kind"))

    def require_plausible(self) -> None:
        """Raises FolderError for values of a wrong type, or larger than the weights can be.

        Before a model is made: sizing it takes no memory, but a million layers would take time.
        """
        for name, expected in TYPES.items():
            value = self.config.get(name)
            if not isinstance(value, expected):
                raise FolderError(
                    f"{self.path / CONFIG} is damaged: {name} is {type(value).__name__}, "
                    f"expected {expected.__name__}."
                )
        tensors, side = max(len(self.weights.shapes), 1), self.weights.largest_side
        for section in SECTIONS:
            options = self.config["settings"].get(section)
            for name, value in options.items() if isinstance(options, dict) else ():
                values = value if isinstance(value, list) else [value]
                largest = max((number for number in values if isinstance(number, int)), default=0)
                reason = None
                # Every layer and every filter width has a tensor of its own.
                if (largest if name == LAYERS else len(values)) > tensors:
                    reason = f"it has {tensors} tensors"
                elif section in SECTIONS[:2] and largest > max(tensors, side):
                    reason = f"no side of a tensor is over {side}"
                if reason is not None:
                    raise FolderError(
                        f"{self.weights.path} does not agree with {CONFIG}: {section}.{name} is "
                        f"{repr(value)[:80]}, but {reason}."
                    )

    def load_weights(self, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the weights, if they are finite, unchanged, and of the names and shapes expected.

        `expected` are tensors of these shapes, on the meta device.
        """
        precision = self.config.get("precision")
        if precision not in PRECISIONS:
            raise FolderError(
                f"{self.path / CONFIG} is damaged: precision is {precision!r}, expected one of "
                f"{', '.join(PRECISIONS)}."
            )
        is_float = precision == FLOAT
        stored = expected if is_float else quantize_weights(expected, precision == INT4_TABLES)
        self.weights.require_tensors(stored, f"{CONFIG} and {TOKENIZER}")
        weights, checksum = self.weights.read(self.mmap)
        checksums = {WEIGHTS: checksum, TOKENIZER: self.tokenizer_checksum}
        MODEL.require_checksums(self.path, self.config, checksums)
        if (damaged := first_not_finite(weights)) is not None:
            raise FolderError(
                f"{self.weights.path} cannot be used: its tensor {damaged} contains NaN or "
                "infinity. The file is damaged, or training diverged before it was saved."
            )
        if not is_float:
            weights = dequantize_weights(weights, expected)
        return {name: flush_subnormal(tensor) for name, tensor in weights.items()}


def embedded_folder(kind: str) -> Path:
    """Returns the folder of the model inside the package; its README.md says how it was made."""
    if kind not in EMBEDDED:
        raise FolderError(
            f"there is no pretrained {kind} inside genpool: give the folder of one that you "
            f"trained, {kind}.from_pretrained(FOLDER). On the command line: --model FOLDER, or "
            "MODEL before FILE."
        )
    return Path(__file__).parents[1] / "embedded" / EMBEDDED[kind]


def write_folder(
    path: str | Path,
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    tokenizer: tokenizers.Tokenizer,
    card: str,
) -> None:
    """Writes a model folder; one that is there is replaced when the new one is complete."""
    with MODEL.replace(path, "the model") as fresh:
        write_text(fresh / CARD, card)
        # Readable, unless it was asked for little space: a line of its own takes 8 bytes a word.
        is_small = config["precision"] == INT4_TABLES
        write_text(fresh / TOKENIZER, tokenizer.to_str(pretty=not is_small))
        # safetensors needs tensors that are contiguous and share no memory.
        separate = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        try:
            save_file(separate, fresh / WEIGHTS, metadata={"format": "pt"})
        except SafetensorError as error:  # which a full disk is, too
            raise OSError(str(error)) from error
        shutil.copymode(fresh / CARD, fresh / WEIGHTS)  # safetensors hides it from other users
        names = (WEIGHTS, TOKENIZER)
        MODEL.write(fresh, config, {name: file_checksum(fresh / name) for name in names})


def read_folder(
    path: str | Path, load: Callable[[SavedFolder], Loaded], mmap: bool = False
) -> Loaded:
    """Returns `load(folder)` of one version of a folder, even while it is being replaced."""
    folder = Path(path)
    try:
        return read_consistently(folder, lambda: load(SavedFolder(folder, mmap)))
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error}") from error


def read_tokenizer_file(folder: Path) -> tuple[StoredTokenizer, str]:
    """Returns the content of tokenizer.json, and its checksum; FolderError if it is not ours."""
    content = (folder / TOKENIZER).read_bytes()
    try:
        return read_tokenizer(content), data_checksum(content)
    except ConfigError as error:
        raise FolderError(f"{folder / TOKENIZER} cannot be used: {error}") from None

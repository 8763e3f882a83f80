"""model.safetensors: its header, its tensors once they are known to be the right ones, checksums.

Weights may be stored in less space, as integers with one scale for each row. A row is what the last
dimension of a tensor runs over: the vector of a word, the inputs of one output. In 8 bits its
largest value becomes 127; tables of words and n-grams may also have 4 bits. Biases and other single
rows are not changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Self

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from genpool.errors import FolderError
from genpool.tensors.quantized_rows import dequantize_rows_int4, quantize_rows, quantize_rows_int4

FLOATING = ("F16", "BF16", "F32", "F64")
INTEGERS = "I8"
#: two integers of 4 bits in a byte
PACKED_INTEGERS = "U8"
#: ends the name of the scales of a tensor
SCALE = ".scale"
#: how the names of tables end whose rows are words or n-grams: these may be stored in 4 bits
TABLES = ("embedding.words", "embedding.backing.table")
#: values that are looked at together, within a processor's cache
FLUSH_VALUES = 2**16


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights of which only the header was read.

    Attributes:
        path: the file.
        shapes: the shape of every tensor, by name.
        dtypes: the data type of every tensor, by name, as safetensors spells it: "F32".
    """

    path: Path
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]

    @classmethod
    def open(cls, path: Path) -> Self:
        """Reads the header of a file; raises FolderError if it is not a complete safetensors."""
        try:
            # Not "pt", for which torch would open and map the file a second time.
            with safe_open(path, framework="numpy") as file:
                slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
                shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
                return cls(path, shapes, {name: part.get_dtype() for name, part in slices.items()})
        except (SafetensorError, OSError) as error:
            raise _unreadable(path, error) from None

    @property
    def largest_side(self) -> int:
        """The largest dimension of a tensor that has any values."""
        sides = [side for shape in self.shapes.values() if 0 not in shape for side in shape]
        return max(sides, default=0)

    def read(self) -> tuple[dict[str, Tensor], str]:
        """Returns the tensors in memory of their own, and the checksum of the file."""
        data = self.path.read_bytes()
        checksum = file_checksum(data)
        try:
            tensors = safetensors.torch.load(data)
        except SafetensorError as error:
            raise _unreadable(self.path, error) from None
        del data
        for name in tensors:
            # Copied into memory that torch aligns: on other memory its kernels round differently.
            tensors[name] = tensors[name].clone()
        return self._unchanged(tensors), checksum

    def map(self) -> tuple[dict[str, Tensor], str]:
        """Returns the tensors as views of the file on disk, and the checksum of the file."""
        with self.path.open("rb") as file:
            checksum = stream_checksum(file)
        with safe_open(self.path, framework="pt") as mapped:
            tensors = {name: mapped.get_tensor(name) for name in mapped.keys()}  # noqa: SIM118
        return self._unchanged(tensors), checksum

    def _unchanged(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != self.shapes:
            raise FolderError(f"{self.path} was changed while it was read: load it again.")
        return tensors


def file_checksum(data: bytes) -> str:
    """Returns the checksum of a file's content: what `sha256sum` prints."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def stream_checksum(file: BufferedReader) -> str:
    """Returns the checksum of a file that is not read into memory at once."""
    return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def first_not_finite(weights: Mapping[str, Tensor]) -> str | None:
    """Returns the name of the first tensor with NaN or infinity, or None."""
    for name, tensor in weights.items():
        # The sum of finite values may overflow, but is fast: only then every value is looked at.
        if tensor.is_floating_point() and not (
            torch.isfinite(tensor.sum()) or torch.isfinite(tensor).all()
        ):
            return name
    return None


def flush_subnormal(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the weights with 0 for the values next to it, which make products 30 times slower.

    The memory of the weights is not written to, because it may be a file; most have none of them.
    """
    return {name: _without_subnormal(tensor) for name, tensor in weights.items()}


def _without_subnormal(tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        return tensor
    smallest = torch.finfo(tensor.dtype).tiny
    for part in torch.split(tensor.flatten(), FLUSH_VALUES):
        if bool(((part != 0) & (part.abs() < smallest)).any()):
            return torch.where(tensor.abs() < smallest, 0, tensor)
    return tensor


def quantize_weights(weights: Mapping[str, Tensor], int4_tables: bool = False) -> dict[str, Tensor]:
    """Returns the weights with every matrix as 8-bit integers, and its scales as NAME.scale.

    With `int4_tables`, tables of words and n-grams are in 4 bits, their scales in half precision.
    """
    result: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() < 2 or not weight.is_floating_point():
            result[name] = weight
            continue
        is_int4 = int4_tables and is_table(name)
        quantize = quantize_rows_int4 if is_int4 else quantize_rows
        integers, scales = quantize(weight.detach().float())
        scales = scales.squeeze(-1)  # (..., rows)
        result[name], result[name + SCALE] = integers, scales.half() if is_int4 else scales
    return result


def dequantize_weights(
    weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, Tensor]:
    """Returns the weights that `quantize_weights` was called with, rounded.

    `shapes` are those of the weights; tables in 4 bits whose last dimension is odd need them.
    """
    result = {}
    for name, weight in weights.items():
        if name.endswith(SCALE):
            continue
        if weight.dtype is torch.int8:
            weight = weight.float().mul_(weights[name + SCALE].unsqueeze(-1))
        elif weight.dtype is torch.uint8:
            scales = weights[name + SCALE].float().unsqueeze(-1)
            dim = (shapes or {}).get(name, (2 * weight.shape[-1],))[-1]
            weight = dequantize_rows_int4(weight, scales, dim)
        result[name] = weight
    return result


def is_table(name: str) -> bool:
    """Returns whether a tensor is a table of words or n-grams, by its name."""
    return name.endswith(TABLES)


def stored_tensors(
    shapes: Mapping[str, tuple[int, ...]], int8: bool, int4_tables: bool
) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
    """Returns the shape and the possible data types of every stored tensor of a model.

    Args:
        shapes: the shapes of the model's weights, by name.
        int8: matrices are stored as integers.
        int4_tables: tables are stored as integers of 4 bits.
    """
    stored: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {}
    for name, shape in shapes.items():
        if not int8 or len(shape) < 2:
            stored[name] = (shape, FLOATING)
            continue
        packed = int4_tables and is_table(name)
        width = (shape[-1] + 1) // 2 if packed else shape[-1]
        stored[name] = ((*shape[:-1], width), (PACKED_INTEGERS if packed else INTEGERS,))
        stored[name + SCALE] = (shape[:-1], FLOATING)
    return stored


def _unreadable(path: Path, error: Exception) -> FolderError:
    with path.open("rb") as file:
        start = file.read(4)
    if start[:1] == b"\x80" or start == b"PK\x03\x04":
        return FolderError(
            f"{path} contains a pickle, which could run code, in place of safetensors; it was not "
            "opened. Ask for the model in safetensors format."
        )
    return FolderError(f"{path} is not a complete safetensors file: {error}")

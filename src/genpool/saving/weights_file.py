"""model.safetensors: its header, and its tensors once they are known to be the right ones.

Weights may be stored as integers with one scale for each row, the last dimension of a tensor. In 8
bits its largest value becomes 127; tables of words and n-grams may also have 4 bits. Biases and
other single rows are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from genpool.disk.folder_format import file_checksum
from genpool.errors import FolderError
from genpool.tensors.packing import dequantize_rows_int4, quantize_rows, quantize_rows_int4

FLOATING = ("F16", "BF16", "F32", "F64")
#: how integers are stored: of 8 bits, and two of 4 bits in a byte
STORED = {torch.int8: (("I8",), "8-bit integers"), torch.uint8: (("U8",), "4-bit integers")}
#: ends the name of the scales of a tensor
SCALE = ".scale"
#: how the names of tables end whose rows are words or n-grams: these may be stored in 4 bits
TABLES = ("embedding.words", "embedding.backing.table")
#: values that are looked at together, within a processor's cache
FLUSH_VALUES = 2**16


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights of which only the header was read."""

    path: Path
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]  # as safetensors names them: "F32"

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
            with path.open("rb") as file:
                start = file.read(4)
            if start[:1] == b"\x80" or start == b"PK\x03\x04":
                raise FolderError(
                    f"{path} contains a pickle, which could run code, in place of safetensors; it "
                    "was not opened. Ask for the model in safetensors format."
                ) from None
            raise FolderError(f"{path} is not a complete safetensors file: {error}") from None

    @property
    def largest_side(self) -> int:
        """The largest dimension of a tensor that has any values."""
        sides = [side for shape in self.shapes.values() if 0 not in shape for side in shape]
        return max(sides, default=0)

    def require_tensors(self, weights: Mapping[str, Tensor], source: str) -> None:
        """Raises FolderError if names, shapes or types are not those that `source` says."""
        problems = [f"{name} is missing" for name in weights if name not in self.shapes]
        for name, shape in self.shapes.items():
            if name not in weights:
                problems.append(f"{name} is not part of it")
                continue
            expected, dtype = tuple(weights[name].shape), self.dtypes[name]
            dtypes, values = STORED.get(weights[name].dtype, (FLOATING, "floating-point values"))
            if shape != expected:
                problems.append(f"{name} is {shape}, the settings say {expected}")
            if dtype not in dtypes:
                problems.append(f"{name} contains {dtype}, expected {values}")
        if problems:
            shown = "; ".join(problems[:5]) + (" ..." if len(problems) > 5 else "")
            raise FolderError(
                f"{self.path} does not agree with {source} ({len(problems)} differences): {shown}. "
                "Were files of two models mixed?"
            )

    def read(self, mmap: bool = False) -> tuple[dict[str, Tensor], str]:
        """Returns the tensors, with `mmap` views of the file on disk, and its checksum."""
        checksum = file_checksum(self.path)
        with safe_open(self.path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != self.shapes:
            raise FolderError(f"{self.path} was changed while it was read: load it again.")
        if not mmap:
            tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        return tensors, checksum


def first_not_finite(weights: Mapping[str, Tensor]) -> str | None:
    """Returns the name of the first tensor with NaN or infinity, or None."""
    for name, tensor in weights.items():
        # The sum of finite values may overflow, but is fast: only then every value is looked at.
        if tensor.is_floating_point() and not (
            torch.isfinite(tensor.sum()) or torch.isfinite(tensor).all()
        ):
            return name
    return None


def flush_subnormal(tensor: Tensor) -> Tensor:
    """Returns a tensor with 0 for the values next to it, which make products 30 times slower.

    Its memory is not written to, because it may be a file.
    """
    if not tensor.is_floating_point():
        return tensor
    smallest = torch.finfo(tensor.dtype).tiny
    for part in torch.split(tensor.flatten(), FLUSH_VALUES):
        if bool(((part != 0) & (part.abs() < smallest)).any()):
            return torch.where(tensor.abs() < smallest, 0, tensor)
    return tensor


def quantize_weights(weights: Mapping[str, Tensor], int4_tables: bool = False) -> dict[str, Tensor]:
    """Returns the weights with every matrix as 8-bit integers, and its scales as NAME.scale.

    With `int4_tables`, tables of words and n-grams have 4 bits, and scales in half precision.
    """
    result: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() < 2 or not weight.is_floating_point():
            result[name] = weight
            continue
        is_int4 = int4_tables and name.endswith(TABLES)
        quantize = quantize_rows_int4 if is_int4 else quantize_rows
        result[name], scales = quantize(weight.detach().float())  # (..., rows, 1)
        result[name + SCALE] = (scales.half() if is_int4 else scales).squeeze(-1)
    return result


def dequantize_weights(
    weights: Mapping[str, Tensor], originals: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Returns the weights that `quantize_weights` stored; `originals` have their shapes."""
    result = {}
    for name, original in originals.items():
        weight, scales = weights[name], weights.get(name + SCALE)
        if scales is not None and weight.dtype is torch.int8:
            weight = weight.float().mul_(scales.unsqueeze(-1))
        elif scales is not None:
            weight = dequantize_rows_int4(weight, scales.float().unsqueeze(-1), original.shape[-1])
        result[name] = weight
    return result

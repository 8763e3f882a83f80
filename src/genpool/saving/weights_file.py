"""model.safetensors: its header, and its tensors once they are known to be the right ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from genpool.errors import FolderError
from genpool.saving.checksums import file_checksum, stream_checksum

FLOATING = ("F16", "BF16", "F32", "F64")
INTEGERS = "I8"
#: values that are looked at together, within a processor's cache
FLUSH_VALUES = 2**16
#: two integers of 4 bits in a byte
PACKED_INTEGERS = "U8"


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
        """Reads the header of a file.

        Raises:
            FolderError: the file is not complete, or of another format.
        """
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


def _unreadable(path: Path, error: Exception) -> FolderError:
    with path.open("rb") as file:
        start = file.read(4)
    if start[:1] == b"\x80" or start == b"PK\x03\x04":
        return FolderError(
            f"{path} contains a pickle, which could run code, in place of safetensors; it was not "
            "opened. Ask for the model in safetensors format."
        )
    return FolderError(f"{path} is not a complete safetensors file: {error}")

"""What is checked in config.json before a model is made of it.

A model that is only sized takes no memory, but a million layers take time: settings are compared
with the sizes of the weights first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from genpool.errors import FolderError
from genpool.saving import storage

TYPES = {"settings": dict, "characters": str, "labels": list, "notes": dict}
#: sections with options of modules
SECTIONS = ("embedding", "encoder", "pooling", "classifier")
#: sections whose integers are always sizes of tensors (those of characters may be without use)
SIZED = ("encoder", "pooling")
#: options that say how many modules there are, not how large
COUNTS = ("layers",)


def require_plausible(folder: storage.SavedFolder) -> None:
    """Raises FolderError for values of a wrong type, or larger than the weights can be."""
    for name, expected in TYPES.items():
        value = folder.config.get(name, {} if name == "notes" else None)
        if not isinstance(value, expected):
            raise FolderError(
                f"{folder.path / storage.CONFIG} is damaged: {name} is {type(value).__name__}, "
                f"expected {expected.__name__}."
            )
    tensors, side = len(folder.weights.shapes), folder.weights.largest_side
    for section, name, value in _options(folder.config["settings"]):
        sizes = [number for number in _as_list(value) if isinstance(number, int)]
        count = max(sizes, default=0) if name in COUNTS else len(_as_list(value))
        # Every layer and every filter width has a tensor of its own.
        if count > max(tensors, 1):
            raise _implausible(folder, f"{section}.{name}", value, f"it has {tensors} tensors")
        if section in SIZED and max(sizes, default=0) > max(tensors, side):
            reason = f"no side of a tensor is over {side}"
            raise _implausible(folder, f"{section}.{name}", value, reason)


def _options(settings: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yields the section, the name and the value of every option of a module."""
    for section in SECTIONS:
        options = settings.get(section)
        for name, value in options.items() if isinstance(options, dict) else ():
            yield section, name, value


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _implausible(folder: storage.SavedFolder, name: str, value: Any, reason: str) -> FolderError:
    shown = repr(value)
    return FolderError(
        f"{folder.path / storage.WEIGHTS} does not agree with {storage.CONFIG}: {name} is "
        f"{shown if len(shown) < 80 else shown[:80] + ' ...'}, but {reason}."
    )

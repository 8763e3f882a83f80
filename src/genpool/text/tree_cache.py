"""Trees that a parser made, kept in a file, because parsing takes longer than reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from genpool.disk.atomic import atomic_file
from genpool.trees.kind import Tree

KEY_BYTES = 16
_VERSION = "parser"


class TreeCache:
    """Dependency trees by the words of their sentences; text is kept as a hash only."""

    def __init__(self) -> None:
        self.version = ""
        self._trees: dict[bytes, Tree] = {}

    def __len__(self) -> int:
        return len(self._trees)

    def look_up(
        self,
        sentences: Sequence[Sequence[str]],
        parse: Callable[[Sequence[Sequence[str]]], list[Tree]],
        version: str,
    ) -> list[Tree]:
        """Returns the tree of every sentence; those that are new are parsed together.

        version: of the parser; trees that another version made are forgotten.
        """
        if version != self.version:
            self.version, self._trees = version, {}
        keys = [_key(words) for words in sentences]
        by_key = dict(zip(keys, sentences, strict=True))
        new = {key: words for key, words in by_key.items() if key not in self._trees}
        self._trees.update(zip(new, parse(list(new.values())) if new else (), strict=True))
        return [self._trees[key] for key in keys]

    def load(self, path: Path) -> None:
        """Reads a file that `save` wrote; a file that is missing or damaged is no cache."""
        try:
            with safe_open(path, framework="numpy") as file:
                version = (file.metadata() or {}).get(_VERSION, "")
                keys, starts, values = (file.get_tensor(n) for n in ("keys", "starts", "values"))
        except (OSError, SafetensorError):
            return
        if len(starts) != len(keys) + 1 or (len(starts) and starts[-1] != len(values)):
            return
        trees = np.split(values, starts[1:-1])
        self.version = version
        self._trees = {key.tobytes(): tree for key, tree in zip(keys, trees, strict=False)}

    def save(self, path: Path) -> None:
        """Writes all trees; nothing if there are none."""
        if not self._trees:
            return
        trees = list(self._trees.values())
        starts = np.cumsum([0, *(len(tree) for tree in trees)]).astype(np.int64)
        arrays: dict[str, NDArray[Any]] = {
            "keys": np.frombuffer(b"".join(self._trees), dtype=np.uint8).reshape(-1, KEY_BYTES),
            "starts": starts,
            "values": np.concatenate(trees).astype(np.int32),
        }
        with atomic_file(path) as fresh:
            save_file(arrays, fresh, metadata={_VERSION: self.version})


def _key(words: Sequence[str]) -> bytes:
    text = "\0".join(words).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=KEY_BYTES).digest()

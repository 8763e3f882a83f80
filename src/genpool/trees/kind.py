"""What every kind of syntax tree can do; a tree is a few integers for each token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

#: one tree: (tokens, columns)
Tree = NDArray[np.int32]


class TreeKind(ABC):
    """One kind of syntax tree over the tokens of a sentence."""

    #: integers per token
    columns: ClassVar[int]

    @abstractmethod
    def balanced(self, tokens: int) -> Tree:
        """Returns the tree of a sentence without a parse: halves of halves."""

    @abstractmethod
    def parse(self, text: str) -> Tree:
        """Returns the tree that a text describes.

        Raises:
            InputError: the text does not describe a tree.
        """

    @abstractmethod
    def check(self, tree: Tree) -> None:
        """Raises InputError where the integers are not one tree."""

    @abstractmethod
    def truncated(self, tree: Tree, tokens: int) -> Tree:
        """Returns the tree of the first tokens."""

    @abstractmethod
    def with_ends(self, tree: Tree) -> Tree:
        """Returns the tree with a begin and an end token around the sentence."""

    @abstractmethod
    def from_dependencies(self, heads: Tree) -> Tree:
        """Returns a tree of this kind from a dependency tree (tokens, 2)."""


def pad_trees(trees: Sequence[Tree], time: int) -> NDArray[np.int64]:
    """Returns the trees of a batch as (batch, time, columns), zeros at padding on the right."""
    columns = trees[0].shape[1] if len(trees) else 1
    padded = np.zeros((len(trees), time, columns), dtype=np.int64)
    for row, tree in enumerate(trees):
        padded[row, : len(tree)] = tree
    return padded

"""Syntax trees of sentences as a few integers per token; works without PyTorch.

>>> from genpool.trees import TREE_KINDS, to_brackets
>>> tree = TREE_KINDS["binary"].parse("( ( A man ) sleeps )")     # (tokens, 1): 0, 1, 1
>>> to_brackets(["A", "man", "sleeps"], tree)
'( ( A man ) sleeps )'
"""

from genpool.trees.binary import BinaryTrees, parse_brackets, to_brackets
from genpool.trees.dependency import RELATIONS, DependencyTrees, relation_id
from genpool.trees.kind import Tree, TreeKind, pad_trees

#: every kind of tree by the name that an encoder's `tree_kind` has
TREE_KINDS: dict[str, TreeKind] = {"binary": BinaryTrees(), "dependency": DependencyTrees()}

__all__ = [
    "RELATIONS",
    "TREE_KINDS",
    "BinaryTrees",
    "DependencyTrees",
    "Tree",
    "TreeKind",
    "pad_trees",
    "parse_brackets",
    "relation_id",
    "to_brackets",
]

"""Syntax trees of sentences as a few integers per token.

>>> from genpool.reproduction.trees import BinaryTrees, to_brackets
>>> tree = BinaryTrees.parse("( ( A man ) sleeps )")     # (tokens, 1): 0, 1, 1
>>> to_brackets(["A", "man", "sleeps"], tree)
'( ( A man ) sleeps )'
"""

from genpool.reproduction.trees.annotator import Tree, TreeAnnotator, tree_rows
from genpool.reproduction.trees.head_rules import RELATIONS, relation_id
from genpool.reproduction.trees.kinds import (
    BinaryTrees,
    DependencyTrees,
    parse_brackets,
    to_brackets,
)

__all__ = [
    "RELATIONS",
    "BinaryTrees",
    "DependencyTrees",
    "Tree",
    "TreeAnnotator",
    "parse_brackets",
    "relation_id",
    "to_brackets",
    "tree_rows",
]

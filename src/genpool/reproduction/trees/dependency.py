"""Dependency trees over the tokens of a sentence, as two integers per token.

A tree is an array (tokens, 2): the index of each token's head, -1 for the root, and the relation of
the token to it, an index of `head_rules.RELATIONS`. As text, heads count from 1 and the root has 0:

    2:det 3:nsubj 0:root             A man sleeps
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from genpool.errors import InputError
from genpool.reproduction.trees.annotator import Tree, TreeAnnotator
from genpool.reproduction.trees.head_rules import constituency_dependencies, relation_id


@lru_cache(maxsize=1024)
def _balanced(tokens: int) -> Tree:
    tree = np.zeros((tokens, 2), dtype=np.int32)
    spans = [(0, tokens, -1)] if tokens else []
    while spans:
        start, end, head = spans.pop()
        if start < end:
            middle = (start + end) // 2
            tree[middle, 0] = head
            spans += [(start, middle, middle), (middle + 1, end, middle)]
    tree.flags.writeable = False  # it is shared
    return tree


class DependencyTrees(TreeAnnotator):
    """Dependency trees: two columns, head and relation.

    A column "..._dependency_tree" has them as text; a column "..._parse", as in the official files
    of SNLI and MultiNLI, has constituency parses.
    """

    columns = 2
    suffixes = ("_dependency_tree", "_parse")

    @classmethod
    def read(cls, column: str, text: str) -> Tree:
        if column.endswith("_parse"):
            return constituency_dependencies(text)[1]
        return super().read(column, text)

    @staticmethod
    def balanced(tokens: int) -> Tree:
        """Returns the tree whose root is the middle token, and so on in both halves."""
        return _balanced(tokens)

    @staticmethod
    def parse(text: str) -> Tree:
        rows = []
        for token in text.split():
            head, _, relation = token.partition(":")
            if not head.isascii() or not head.isdigit():
                raise InputError(
                    f"{token!r} is no head and relation; expected one for each token, such as "
                    "'2:det' ('0:root' for the root)."
                )
            rows.append((int(head) - 1, relation_id(relation)))
        if any(head >= len(rows) for head, _ in rows):
            highest = 1 + max(head for head, _ in rows)
            raise InputError(f"the head {highest} is beyond the {len(rows)} tokens of the tree.")
        return np.array(rows, dtype=np.int32).reshape(-1, 2)

    @staticmethod
    def check(tree: Tree) -> None:
        heads = tree[:, 0].tolist()
        if len(tree) and (min(heads) < -1 or max(heads) >= len(tree)):
            raise InputError(f"heads {heads} are not all among the {len(tree)} tokens.")
        if len(tree) and heads.count(-1) != 1:
            raise InputError(f"heads {heads} have {heads.count(-1)} roots; expected one.")
        for token in range(len(heads)):
            if _ancestors(heads, token) is None:
                raise InputError(f"heads {heads} have a cycle through token {token}.")

    @staticmethod
    def truncated(tree: Tree, tokens: int) -> Tree:
        """Returns the first tokens; the head of one whose head is cut is the next one above."""
        if tokens >= len(tree):
            return tree
        heads, cut = tree[:, 0].tolist(), tree[:tokens].copy()
        root = -1
        for token in range(tokens):
            above = [head for head in _ancestors(heads, token) or () if head < tokens]
            cut[token, 0] = above[0] if above else root
            if not above and root < 0:
                root = token
        return cut

    @staticmethod
    def with_ends(tree: Tree) -> Tree:
        roots = np.flatnonzero(tree[:, 0] < 0) + 1 if len(tree) else np.array([-1])
        shifted = tree.copy()
        shifted[:, 0] = np.where(tree[:, 0] < 0, -1, tree[:, 0] + 1)
        begin = (roots[0], 0)
        end = (roots[0], 0) if len(tree) else (0, 0)
        return np.concatenate([[begin], shifted, [end]]).astype(np.int32)

    @staticmethod
    def from_dependencies(heads: Tree) -> Tree:
        return heads

    @staticmethod
    def single_root(heads: list[int]) -> list[int]:
        """Returns heads with one root: further roots become dependents of the first."""
        first = heads.index(-1)
        return [first if h < 0 and token != first else h for token, h in enumerate(heads)]

    @staticmethod
    def last_descendants(heads: list[int]) -> list[int]:
        """Returns the last token of the subtree of every token."""
        last = list(range(len(heads)))
        for token in range(len(heads)):
            for above in _ancestors(heads, token) or ():
                last[above] = max(last[above], token)
        return last

    @staticmethod
    def projective(heads: list[int]) -> list[int]:
        """Returns heads without crossing arcs: the shortest crossing arc moves up to the next head.

        Afterwards the tokens between a token and its head are all below that head.
        """
        heads = list(heads)
        while crossing := [token for token in range(len(heads)) if _crosses(heads, token)]:
            token = min(crossing, key=lambda token: abs(token - heads[token]))
            heads[token] = heads[heads[token]]
        return heads


def _ancestors(heads: list[int], token: int) -> list[int] | None:
    """Returns all heads above a token, the nearest first; None if there is a cycle."""
    above: list[int] = []
    while (token := heads[token]) >= 0:
        if len(above) == len(heads):
            return None
        above.append(token)
    return above


def _crosses(heads: list[int], token: int) -> bool:
    """Whether a token between this one and its head is not below that head."""
    head = heads[token]
    if head < 0:
        return False
    between = range(min(token, head) + 1, max(token, head))
    return any(head not in (_ancestors(heads, other) or ()) for other in between)

"""Dependency and binary trees over the tokens of a sentence, as integers per token.

A dependency tree is an array (tokens, 2): the index of each token's head, -1 for the root, and the
relation of the token to it, an index of `head_rules.RELATIONS`. As text, heads count from 1 and the
root has 0:

    2:det 3:nsubj 0:root             A man sleeps

A binary tree is an array (tokens, 1) of reductions: how many nodes with two children end at each
token. This is the shift-reduce form of the tree: every token is shifted onto a stack, then the two
top nodes are joined as often as the token's integer says.

    ( ( A man ) ( is asleep ) )      A 0, man 1, is 0, asleep 2
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from genpool.errors import InputError
from genpool.reproduction.trees.annotator import Tree, TreeAnnotator
from genpool.reproduction.trees.head_rules import constituency_dependencies, relation_id


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
    @lru_cache(maxsize=1024)
    def balanced(tokens: int) -> Tree:
        """Returns the tree whose root is the middle token, and so on in both halves."""
        tree = np.zeros((tokens, 2), dtype=np.int32)
        spans = [(0, tokens, -1)]
        while spans:
            start, end, head = spans.pop()
            if start < end:
                middle = (start + end) // 2
                tree[middle, 0] = head
                spans += [(start, middle, middle), (middle + 1, end, middle)]
        tree.flags.writeable = False  # it is shared
        return tree

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
    def projective(heads: list[int]) -> list[int]:
        """Returns heads without crossing arcs: the shortest of them moves up to the next head."""
        # Afterwards the tokens between a token and its head are all below that head.
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


def parse_brackets(text: str) -> tuple[list[str], list[int]]:
    """Returns the words of a bracketed tree and their reductions.

    Brackets and words are separated by spaces, as in the column `binary_parse` of SNLI. A bracket
    with one child is that child; of more than two, the last ones are joined first.
    """
    words: list[str] = []
    reductions: list[int] = []
    children = [0]  # of every bracket that is open; the first is the sentence itself
    for token in text.split():
        if token == "(":
            children.append(0)
        elif token != ")":
            words.append(token)
            reductions.append(0)
            children[-1] += 1
        elif len(children) == 1:
            raise InputError(f"a bracket is closed that was not opened, after {words[-3:]}.")
        else:
            count = children.pop()
            if not count:
                raise InputError(f"a bracket has nothing in it, after {words[-3:]}.")
            reductions[-1] += count - 1
            children[-1] += 1
    if len(children) > 1:
        raise InputError(f"{len(children) - 1} brackets are not closed at the end of the tree.")
    if children[0] > 1:
        reductions[-1] += children[0] - 1
    return words, reductions


def to_brackets(words: Sequence[str], tree: Tree) -> str:
    """Returns a tree (tokens, 1) with brackets: "( ( A man ) sleeps )"."""
    stack: list[str] = []
    for word, count in zip(words, tree[:, 0].tolist(), strict=True):
        stack.append(word)
        for _ in range(count):
            right = stack.pop()
            stack[-1] = f"( {stack[-1]} {right} )"
    return " ".join(stack)


class BinaryTrees(TreeAnnotator):
    """Binary trees: one column, the reductions."""

    columns = 1
    suffixes = ("_binary_tree", "_binary_parse")

    @staticmethod
    @lru_cache(maxsize=1024)
    def balanced(tokens: int) -> Tree:
        tree = np.zeros((tokens, 1), dtype=np.int32)
        spans = [(0, tokens)]
        while spans:
            start, end = spans.pop()
            if end - start > 1:
                tree[end - 1] += 1
                middle = (start + end + 1) // 2  # of an odd number, the left half is longer
                spans += [(start, middle), (middle, end)]
        tree.flags.writeable = False  # it is shared
        return tree

    @staticmethod
    def parse(text: str) -> Tree:
        return np.array(parse_brackets(text)[1], dtype=np.int32).reshape(-1, 1)

    @staticmethod
    def check(tree: Tree) -> None:
        counts = tree[:, 0]
        # On the stack after each token: what was shifted, less what was joined; at least one node.
        depth = np.arange(1, len(tree) + 1) - np.cumsum(counts)  # (tokens,)
        if (counts < 0).any() or (depth < 1).any() or (len(tree) and depth[-1] != 1):
            raise InputError(
                f"reductions {counts.tolist()} are no binary tree of {len(tree)} tokens; expected "
                f"{max(0, len(tree) - 1)} in total, never more than there are nodes to join."
            )

    @staticmethod
    def truncated(tree: Tree, tokens: int) -> Tree:
        cut = tree[:tokens].copy()
        if tokens:  # what is left on the stack is joined at the last token, the last nodes first
            cut[-1] += tokens - 1 - cut.sum()
        return cut

    @staticmethod
    def with_ends(tree: Tree) -> Tree:
        # ( <s> ( sentence </s> ) )
        joined = 2 if len(tree) else 1
        return np.concatenate([[[0]], tree, [[joined]]]).astype(np.int32)

    @staticmethod
    def from_dependencies(heads: Tree) -> Tree:
        """Returns words joined with their right dependents, the nearest first, then the left."""
        head_of = DependencyTrees.projective(heads[:, 0].tolist())
        last = list(range(len(head_of)))  # the last token below every token
        for token in range(len(head_of)):
            for above in _ancestors(head_of, token) or ():
                last[above] = max(last[above], token)
        tree = np.zeros((len(head_of), 1), dtype=np.int32)
        for token, head in enumerate(head_of):
            if head >= 0:
                # A node ends with the dependent on the right, or with the last one of the head.
                tree[last[token] if token > head else last[head]] += 1
        return tree

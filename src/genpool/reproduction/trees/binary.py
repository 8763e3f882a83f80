"""Binary trees over the tokens of a sentence, as one integer per token.

A tree is an array (tokens, 1) of reductions: how many nodes with two children end at each token.
This is the shift-reduce form of the tree: every token is shifted onto a stack, then the two top
nodes are joined as often as the token's integer says.

    ( ( A man ) ( is asleep ) )      A 0, man 1, is 0, asleep 2
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from genpool.errors import InputError
from genpool.reproduction.trees.annotator import Tree, TreeAnnotator
from genpool.reproduction.trees.dependency import DependencyTrees


def parse_brackets(text: str) -> tuple[list[str], list[int]]:
    """Returns the words of a bracketed tree and their reductions.

    Brackets and words are separated by spaces, as in the column `binary_parse` of SNLI. A bracket
    with one child is that child; of more than two, the last ones are joined first.

    Raises:
        InputError: a bracket is not closed, not opened, or empty.
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
    """Returns a tree with brackets: "( ( A man ) sleeps )".

    Args:
        words: one for each token.
        tree: (tokens, 1).
    """
    stack: list[str] = []
    for word, count in zip(words, tree[:, 0].tolist(), strict=True):
        stack.append(word)
        for _ in range(count):
            right = stack.pop()
            stack[-1] = f"( {stack[-1]} {right} )"
    return " ".join(stack)


@lru_cache(maxsize=1024)
def _balanced(tokens: int) -> Tree:
    tree = np.zeros((tokens, 1), dtype=np.int32)
    spans = [(0, tokens)] if tokens else []
    while spans:
        start, end = spans.pop()
        if end - start > 1:
            tree[end - 1] += 1
            middle = (start + end + 1) // 2  # of an odd number, the left half is longer
            spans += [(start, middle), (middle, end)]
    tree.flags.writeable = False  # it is shared
    return tree


class BinaryTrees(TreeAnnotator):
    """Binary trees: one column, the reductions."""

    columns = 1
    suffixes = ("_binary_tree", "_binary_parse")

    @staticmethod
    def balanced(tokens: int) -> Tree:
        return _balanced(tokens)

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
        if tokens >= len(tree):
            return tree
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
        """Returns a word joined with its right dependents, the nearest first, then its left ones.

        heads (tokens, 2), as in `DependencyTrees`.
        """
        head_of = DependencyTrees.projective(heads[:, 0].tolist())
        last = DependencyTrees.last_descendants(head_of)
        tree = np.zeros((len(head_of), 1), dtype=np.int32)
        for token, head in enumerate(head_of):
            if head >= 0:
                # A node ends with the dependent on the right, or with the last one of the head.
                tree[last[token] if token > head else last[head]] += 1
        return tree

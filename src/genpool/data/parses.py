"""Parses in the columns of a table, as syntax trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from genpool.data.rows import BadRow, to_text
from genpool.errors import InputError
from genpool.trees import TREE_KINDS, Tree


def parse_tree(
    values: Mapping[str, object],
    column: str | None,
    kind: str,
    parse: Callable[[str], Tree] | None = None,
) -> dict[str, Tree]:
    """Returns the tree of a column by its kind; empty where there is no column, or no parse in it.

    Args:
        values: the row.
        column: the column, or None.
        kind: a name of `TREE_KINDS`.
        parse: reads the text of the column. Default: None, the text form of the kind.

    Raises:
        BadRow: the column holds something that is no tree.
    """
    text = None if column is None else to_text(values.get(column))
    if text is None:
        return {}
    try:
        tree = (parse or TREE_KINDS[kind].parse)(text)
        TREE_KINDS[kind].check(tree)
    except InputError as error:
        raise BadRow("bad parse", f"column {column!r} holds no {kind} tree: {error}") from None
    return {kind: tree}

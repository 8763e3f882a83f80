"""What scikit-learn passes as X, as a list of texts."""

from __future__ import annotations

from typing import Any

from genpool.errors import InputError
from genpool.inference.sentence_vectors import require_iterable, require_texts


def as_texts(X: Any) -> list[str]:  # noqa: N803
    """Returns X as a list of texts.

    Args:
        X: a list, an array or a column of texts; also a data frame or a two-dimensional array with
            one column, which is what a ColumnTransformer passes for a list of one column.

    Raises:
        InputError: X is one string, has several columns, or has a value that is not a string.
    """
    if isinstance(X, str):
        raise InputError("got one string; expected a list of texts.")
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 0:
        raise InputError("got an array without dimensions; expected a list of texts.")
    if shape is not None and len(shape) > 1:
        if len(shape) > 2 or shape[1] != 1:
            raise InputError(
                f"got data of shape {tuple(shape)}; expected one text per row: name one column. In "
                'a ColumnTransformer, write its name without brackets: "text".'
            )
        X = getattr(X, "to_numpy", lambda: X)().ravel()  # noqa: N806
    return list(require_texts(require_iterable(X)))

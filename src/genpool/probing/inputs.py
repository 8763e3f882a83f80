"""Texts and labels as a user has them: lists, arrays, columns of a data frame."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genpool.errors import InputError

#: labels that config.json of a saved probe can contain
LABEL_TYPES = (str, bool, int, float)


def read_texts(texts: Any) -> list[str]:
    """Returns texts as a list.

    Args:
        texts: a list, an array of one dimension, or a column of a data frame.

    Raises:
        InputError: it is one string, a table, or contains something other than strings.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"texts is {type(texts).__name__}; expected a list of texts.")
    shape = getattr(texts, "shape", (0,))  # of arrays, columns and tables
    if len(shape) != 1:
        raise InputError(
            f"texts is {type(texts).__name__} of shape {tuple(shape)}; expected one "
            'dimension. Of a table, give a column: data["text"].'
        )
    values = list(texts)
    for position, text in enumerate(values):
        if not isinstance(text, str):
            raise InputError(
                f"text {position} is {text!r} ({type(text).__name__}); expected a string. Leave "
                "rows without a text out."
            )
    return [str(text) for text in values]  # NumPy has a string type of its own


def read_labels(labels: Any, rows: int, classes: int = 2) -> list[Any]:
    """Returns labels as a list of plain Python values, one for each of `rows` texts.

    Args:
        labels: a list, an array of one dimension, or a column of a data frame.
        rows: the number of texts.
        classes: the smallest number of different labels. Default: 2.

    Raises:
        InputError: there are more or fewer labels than texts, one is missing, their types are
            mixed, or there are too few classes.
    """
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"labels is {type(labels).__name__}; expected a list of labels.")
    values = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if len(values) != rows:
        raise InputError(f"{rows} texts and {len(values)} labels; expected one label per text.")
    for position, label in enumerate(values):
        missing = label is None or (isinstance(label, float) and math.isnan(label))
        if missing or not isinstance(label, LABEL_TYPES):
            raise InputError(
                f"label {position} is {label!r} ({type(label).__name__}); expected a string or a "
                "number. Leave rows without a label out."
            )
    types = {type(label).__name__ for label in values}
    if len(types) > 1:
        raise InputError(
            f"labels are of mixed types: {', '.join(sorted(types))}; expected one type. Convert "
            "them: [str(label) for label in labels]."
        )
    if len(set(values)) < classes:
        counts = dict(Counter(values))
        raise InputError(f"labels are {counts}; expected {classes} or more different ones.")
    return values


def class_indices(labels: list[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Returns the classes in ascending order, and the class of every label, from 0."""
    classes = sorted(set(labels))
    index = {label: number for number, label in enumerate(classes)}
    numbers = np.array([index[label] for label in labels], dtype=np.int64)  # (rows,)
    return np.array(classes), numbers

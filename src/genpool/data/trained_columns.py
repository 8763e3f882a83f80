"""The columns that a model was trained on, which its folder remembers for the next table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genpool.data.columns import Columns
from genpool.errors import ConfigError

#: the entry of a model's notes
COLUMNS_NOTE = "columns"
_CONFIG = "config.json"


def trained_columns(notes: Mapping[str, Any]) -> dict[str, str]:
    """Returns the columns in the notes of a model, by their use; empty if there are none.

    Args:
        notes: `model.notes`.

    Example:
        >>> trained_columns(model.notes)
        {'label': 'stars', 'first': 'body'}
    """
    columns = notes.get(COLUMNS_NOTE)
    if not isinstance(columns, dict) or not all(isinstance(name, str) for name in columns.values()):
        return {}
    try:
        return Columns.from_uses(columns).uses()
    except ConfigError:  # written by hand, or by a later version
        return {}


def read_trained_columns(folder: str | Path | None) -> dict[str, str]:
    """Returns the columns that a saved model was trained on, without loading it.

    Args:
        folder: the folder of the model; None for an embedded one, which has none.

    Returns:
        The columns by their use; empty if there are none, or the folder cannot be read: whoever
        loads the model then reports why.
    """
    if folder is None:
        return {}
    try:
        config = json.loads((Path(folder) / _CONFIG).read_text(encoding="utf-8"))
        notes = config["notes"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return {}
    return trained_columns(notes) if isinstance(notes, dict) else {}

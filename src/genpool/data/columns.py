"""Columns of a table by their use, {"label": "stars", "first": "body"}: named, usual or trained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from genpool.errors import ConfigError, DataError, unknown_name

USES = ("label", "first", "second", "score", "genre", "id")
# The usual names, in lower case; the first that a table has are taken.
_PAIRS = ("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b")
_TEXTS = (*_PAIRS, ("text",), ("sentence",))
_OTHERS = {
    "label": ("label", "gold_label"),
    "score": ("score", "relatedness", "relatedness_score"),
    "genre": ("genre",),
    "id": ("id", "pairid", "pair_id"),
}
#: what a table needs: its uses, its usual names, and words in the names of likely columns
_NEEDED = {
    "text": (
        ("first", "second"),
        " or ".join(map(" and ".join, _TEXTS)),
        "body|comment|content|description|document|message|post|question|query|review|sentence"
        "|summary|text|title|tweet|utterance",
    ),
    "labels": (
        ("label", "score"),
        " or ".join((*_OTHERS["label"], *_OTHERS["score"])),
        "category|class|grade|intent|label|polarity|rating|score|sentiment|stars|tag|target|topic",
    ),
}
#: the entry of a model's notes that has the columns it was trained on
COLUMNS_NOTE = "columns"


def check_uses(columns: Mapping[str, str]) -> dict[str, str]:
    """Returns the columns; raises ConfigError for an unknown use, or a second without a first."""
    wrong = [unknown_name("use of a column", use, USES) for use in columns if use not in USES]
    if wrong:
        raise ConfigError(wrong)
    if "second" in columns and "first" not in columns:
        raise ConfigError(
            f"second={columns['second']!r} needs first= as well: the column of the other sentence"
        )
    return dict(columns)


def require_columns(
    wanted: Iterable[str],
    names: Sequence[str],
    path: Path | str,
    line: int | None,
    further: Iterable[str] = (),
) -> None:
    """Raises DataError for absent or repeated columns of a table, and for `further` problems."""
    counts = {name: names.count(name) for name in wanted}
    unknown = [unknown_name("column", name, names) for name in counts if not counts[name]]
    repeated = [f"column {name!r} appears {n} times" for name, n in counts.items() if n > 1]
    problems = [*(problem.rstrip(".") for problem in unknown), *repeated, *further]
    if problems and len(names) == 1 and any(delimiter in names[0] for delimiter in "\t,;|"):
        option = "delimiter= (command line: --set 'reader.delimiter=\";\"')"
        problems.append(f"are the columns separated by another character? Name it: {option}")
    if problems:
        raise DataError("; ".join(problems), path, line)


def find_columns(
    wanted: Mapping[str, str],
    preferred: Mapping[str, str],
    names: Sequence[str],
    path: Path | str,
    line: int | None,
    labelled: bool,
) -> dict[str, str]:
    """Returns the columns of a table by their use: wanted, or preferred and free, or usual ones.

    The sentences of a pair are taken together or not at all.
    """
    free = {*names}.difference(wanted.values())
    chosen = {use: name for use, name in preferred.items() if name in free}
    texts = {use for use in preferred if use in ("first", "second")}
    if "first" in wanted or not texts <= chosen.keys():
        chosen = {use: name for use, name in chosen.items() if use not in texts}
    chosen.update(wanted)
    usual = {name.strip().lower(): name for name in reversed(names)}
    if "first" not in chosen:
        found = next((texts for texts in _TEXTS if {*texts} <= usual.keys()), ())
        chosen.update(zip(("first", "second"), (usual[name] for name in found), strict=False))
    for use, choices in _OTHERS.items():
        for name in choices:
            if name in usual:
                chosen.setdefault(use, usual[name])
    columns = {use: chosen[use] for use in USES if use in chosen}
    problems = []
    listed = ", ".join(map(repr, names)) or "no columns"
    for what, (uses, usual_names, likely) in _NEEDED.items():
        if columns.keys().isdisjoint(uses) and (labelled or what == "text"):
            use, other = uses
            perhaps = [f"{use}={name!r}" for name in names if re.search(likely, name.lower())]
            hint = f", perhaps {' or '.join(perhaps)}" if perhaps else ""
            problems.append(
                f"no column of {what} was found ({usual_names}); this table has: {listed}; name "
                f"it: {use}=, {other}= (command line: --{use}, --{other}){hint}"
            )
    require_columns(columns.values(), names, path, line, problems)
    return columns


def trained_columns(notes: Any) -> dict[str, str]:
    """Returns the columns in the notes of a model, by their use; empty if there are none."""
    columns = notes.get(COLUMNS_NOTE) if isinstance(notes, Mapping) else None
    with suppress(ConfigError):  # written by hand, or by a later version
        if isinstance(columns, dict) and all(isinstance(name, str) for name in columns.values()):
            return check_uses(columns)
    return {}


def read_trained_columns(folder: str | Path | None) -> dict[str, str]:
    """Returns the columns that a saved model was trained on, without loading it."""
    # A folder that cannot be read is reported by whoever loads the model.
    with suppress(OSError, ValueError, RecursionError, KeyError, TypeError):
        if folder:
            config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
            return trained_columns(config["notes"])
    return {}

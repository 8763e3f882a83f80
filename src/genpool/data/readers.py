"""All readers by name: a new one is a class and a line here, or registered by a plugin."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from genpool.data.nli import MultiNliReader, SnliReader
from genpool.data.reader import Reader
from genpool.data.rules.generate import RulesReader
from genpool.data.table import HubReader, TableReader
from genpool.data.yelp_pan import PanReader, YelpReader
from genpool.errors import ConfigError, unknown_name
from genpool.registry import Registry

READERS: Registry[Reader] = Registry(
    "reader",
    Reader,  # type: ignore[type-abstract]
    {
        "snli": SnliReader,
        "multinli": MultiNliReader,
        "yelp": YelpReader,
        "age": PanReader,
        "table": TableReader,
        "hub": HubReader,
        "rules": RulesReader,
    },
)
register = READERS.register


def open_reader(name: str, path: str | Path | Mapping[str, str | Path], **options: Any) -> Reader:
    """Returns a reader by name.

    Args:
        name: a name of `READERS`.
        path: the file or folder of the data set; for "hub" its name on the hub. A table reader
            also takes a file for each split, by the name of the split.
        **options: the options of that reader.

    Raises:
        ConfigError: the name, or any of the options, is unknown; all of them are reported
            together, before a file is opened.
        DataError: there is no such data.

    Example:
        >>> reader = open_reader("table", "pairs.tsv", bad_rows="skip")
    """
    reader = READERS.require(name)
    known = reader_options(name)
    wrong = [unknown_name(f"{name} option", key, known) for key in options if key not in known]
    if wrong:
        raise ConfigError(wrong)
    return cast(Callable[..., Reader], reader)(path, **options)


def reader_options(name: str) -> list[str]:
    """Returns the names of the options that a reader takes."""
    initializers = [
        vars(kind)["__init__"] for kind in READERS[name].__mro__ if "__init__" in vars(kind)
    ]
    return sorted(
        {
            parameter.name
            for initializer in initializers[:-1]  # the last is that of `object`
            for parameter in inspect.signature(initializer).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
    )

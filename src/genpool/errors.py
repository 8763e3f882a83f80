"""Every error that genpool raises for a user's mistake.

    GenpoolError
    ├── InputError          a tensor, mask or argument that does not fit (also ValueError)
    ├── ConfigError         a setting, or several of them (also ValueError)
    ├── DataError           a line of a data or vector file (also ValueError)
    ├── FolderError         a saved folder that cannot be read or written
    ├── TrainingError       a run that cannot start or continue
    ├── Stopped             a job that its user stopped, with Ctrl-C or SIGTERM
    │   └── Interrupted     a training run; its state is saved (also TrainingError)
    └── MissingExtraError   an optional package that is not installed (also ImportError)

A message says what was given, where, what was expected, and how to fix it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class GenpoolError(Exception):
    """The base class: `except GenpoolError` catches every mistake that genpool reports."""


class InputError(GenpoolError, ValueError):
    """A tensor, a mask or an argument does not fit."""


class ConfigError(GenpoolError, ValueError):
    """One or several settings are wrong.

    Attributes:
        problems: one sentence for each wrong setting.
    """

    def __init__(self, problems: str | Iterable[str], source: str | Path | None = None) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        where = f"{source}: " if source else ""
        if len(self.problems) == 1:
            message = where + self.problems[0]
        else:
            lines = "\n".join(f"  - {problem}" for problem in self.problems)
            message = f"{where}{len(self.problems)} settings are wrong:\n{lines}"
        super().__init__(message)


class DataError(GenpoolError, ValueError):
    """A file contains something that cannot be used.

    Attributes:
        problem: what is wrong.
        path: the file, or None.
        line: the line of the file, from 1, or None.
    """

    def __init__(self, problem: str, path: str | Path | None = None, line: int | None = None):
        self.problem, self.path, self.line = problem, path, line
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + problem)


class FolderError(GenpoolError):
    """A saved folder is missing, incomplete, damaged, or of another kind."""


class TrainingError(GenpoolError):
    """A training run cannot start or continue."""


class Stopped(GenpoolError):
    """A job was stopped by its user, with Ctrl-C or SIGTERM; the message says what is kept."""


class Interrupted(Stopped, TrainingError):
    """A training run was stopped by its user; its state is saved.

    Attributes:
        folder: the folder of the run.
        step: the last step that is finished.
    """

    def __init__(self, folder: Path, step: int) -> None:
        super().__init__(f"stopped after step {step}; continue with the same command and --resume")
        self.folder, self.step = folder, step


class MissingExtraError(GenpoolError, ImportError):
    """A part of genpool needs a package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package: pip install 'genpool[{extra}]'")


@contextmanager
def require_extra(feature: str, extra: str) -> Iterator[None]:
    """Raises MissingExtraError, with the pip command, for a package that is not installed.

    One that is installed and fails to load keeps its own message.

    Example:
        >>> with require_extra("reading Parquet", "parquet"):
        ...     import pyarrow
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(feature, extra) from error


def unknown_name(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Returns the message for a name that is not in a list, with the nearest one that is."""
    names = sorted(allowed)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}."


def counted(count: int, noun: str) -> str:
    """Returns a number with its noun: "1 row", "2,000 rows"; a noun that ends in s gets "es"."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"

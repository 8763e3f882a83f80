"""The terminal: reports as plain text, in characters that it has; Ctrl-C ends with a message."""

from __future__ import annotations

import codecs
import io
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from types import FrameType

from genpool.errors import Stopped

_HANDLER = "genpool.replace"
#: what is printed instead of the shades of `genpool explain`
_SHADES = {"░": ".", "▒": ":", "▓": "*", "█": "#"}


def replace_unprintable() -> None:
    """Makes standard output replace characters that its encoding lacks, instead of raising.

    Shades of grey become ASCII characters, all others escapes such as \\u4e2d. A handler that the
    user has chosen (PYTHONIOENCODING=cp1252:replace) is kept.
    """
    codecs.register_error(_HANDLER, _replace)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors=_HANDLER)


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    if all(character in _SHADES for character in text):
        return "".join(_SHADES[character] for character in text), error.end
    return codecs.backslashreplace_errors(error)


def plain_tables(markdown: str) -> str:
    """Returns a report for people: the columns of its tables in line, and no marks of Markdown."""
    parts: list[str] = []
    for is_table, group in groupby(markdown.split("\n"), lambda line: line.startswith("|")):
        lines = list(group)
        parts += _align(lines) if is_table else [line.replace("**", "") for line in lines]
    return "\n".join(parts)


def _align(lines: Sequence[str]) -> list[str]:
    header, rule, *rows = (_cells(line) for line in lines)
    table = [header, *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(header))]
    right = [cell.endswith(":") for cell in rule]
    printed = [
        [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        for row in table
    ]
    printed.insert(1, ["-" * width for width in widths])
    return ["  ".join(row).rstrip() for row in printed]


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace("\\|", "|").replace("**", "") for cell in cells]


@contextmanager
def stop_with_message(message: str) -> Iterator[None]:
    """Turns Ctrl-C and SIGTERM into an error: `message`, unless the interrupt has its own."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # Only the main thread may set a handler.
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, interrupt) if in_main_thread else None
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Stopped(str(stop) or message) from None
    finally:
        if in_main_thread:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)

"""Printing on terminals whose encoding lacks some characters, such as cp1252 on Windows."""

from __future__ import annotations

import codecs
import io
import sys

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

"""Plain text out of the XML and HTML of the author-profiling files, which are not trusted."""

from __future__ import annotations

import html
import re
from pathlib import Path
from xml.parsers import expat

from genpool.data.rows import BadRow, Record
from genpool.disk.files import open_bytes

# Patterns and not html.parser, which takes a tweet's "</3" for a comment and drops what follows.
_HIDDEN_START = re.compile(r"<(?:(!--)|(script)\b|(style)\b)", re.IGNORECASE)
_HIDDEN_ENDS = (
    re.compile("-->"),
    re.compile(r"</script\s*>", re.IGNORECASE),
    re.compile(r"</style\s*>", re.IGNORECASE),
)
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?:[\s/][^<>]*)?>")
_BREAKING = re.compile("br|hr|p|div|li|ul|ol|table|tr|td|th|h[1-6]|blockquote", re.IGNORECASE)
_DOCUMENTS = ("document", "conversation")


def strip_markup(text: str) -> str:
    """Returns the text without tags, on one line, with its entities replaced by characters."""
    text = _TAG.sub(_space_or_nothing, _strip_hidden(text))
    return " ".join(html.unescape(text).split())


def _strip_hidden(text: str) -> str:
    """Returns the text with a space in place of each comment, script and style sheet.

    A single pattern from start to end would search the rest of the text once for every start that
    has no end; here a kind that has no end left is not searched for again.
    """
    pieces: list[str] = []
    position = 0
    endless: set[int] = set()
    for start in _HIDDEN_START.finditer(text):
        kind = (start.lastindex or 1) - 1
        if start.start() < position or kind in endless:
            continue
        end = _HIDDEN_ENDS[kind].search(text, start.end())
        if end is None:
            endless.add(kind)
            continue
        pieces += [text[position : start.start()], " "]
        position = end.end()
    return "".join([*pieces, text[position:]])


def documents(path: Path) -> list[Record]:
    """Returns the texts of one author's file, or a single bad record if it is not valid XML.

    Entity declarations are refused, because a few of them can be made to expand without end or to
    name other files; the corpora have none.
    """
    with open_bytes(path) as stream:
        content = stream.read()
    collector = _Collector()
    try:
        collector.parser.Parse(content, True)
    # The last two are for an encoding that the file names and expat does not know.
    except (BadRow, expat.ExpatError, LookupError, ValueError) as error:
        bad = BadRow("invalid XML", f"is not XML that can be read: {error}")
        return [Record(path, collector.parser.CurrentLineNumber, bad)]
    return [Record(path, line, {"text": text}) for line, text in collector.texts]


class _Collector:
    def __init__(self) -> None:
        self.texts: list[tuple[int, str]] = []
        self._line: int | None = None
        self._pieces: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.CharacterDataHandler = self._text
        self.parser.EndElementHandler = self._end

    def _refuse(self, name: str, *_: object) -> None:
        raise BadRow("invalid XML", f"declaring an entity ({name!r}) is refused as unsafe")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name in _DOCUMENTS:
            self._line, self._pieces = self.parser.CurrentLineNumber, []
        else:
            self._text(" ")

    def _text(self, piece: str) -> None:
        if self._line is not None:
            self._pieces.append(piece)

    def _end(self, name: str) -> None:
        if name in _DOCUMENTS and self._line is not None:
            self.texts.append((self._line, strip_markup("".join(self._pieces))))
            self._line = None


def _space_or_nothing(tag: re.Match[str]) -> str:
    # "<s>@</s><b>name</b>" is one word, "one<br>two" is two.
    return " " if _BREAKING.fullmatch(tag[1]) else ""

"""Where the trees of sentences come from: the data, a parser, or halves of halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, Protocol

from genpool.errors import ConfigError, unknown_name
from genpool.text.spacy_parser import SpacyParser
from genpool.text.tree_cache import TreeCache
from genpool.trees import TREE_KINDS, Tree

#: names of PARSERS
ParserName = Literal["spacy"]
Sentences = Sequence[Sequence[str]]


class Parser(Protocol):
    """Parses tokenized sentences.

    Attributes:
        version: a text that changes with the trees, for the cache.
    """

    version: str

    def dependencies(self, sentences: Sentences) -> list[Tree]:
        """Returns the dependency tree (tokens, 2) of every sentence."""
        ...


PARSERS: dict[str, Callable[[], Parser]] = {"spacy": SpacyParser}


@dataclass
class TreeReport:
    """Where the trees came from so far, in sentences.

    Attributes:
        from_data: parses of the data.
        parsed: made by the parser, or found in its cache.
        balanced: balanced trees, of sentences without a parse.
        unfit: those of them whose parse in the data has another number of tokens.
    """

    from_data: int = 0
    parsed: int = 0
    balanced: int = 0
    unfit: int = 0

    def add(self, other: TreeReport) -> None:
        """Adds the counts of another report, such as that of another process."""
        self.from_data += other.from_data
        self.parsed += other.parsed
        self.balanced += other.balanced
        self.unfit += other.unfit

    def __str__(self) -> str:
        total = self.from_data + self.parsed + self.balanced
        parts = [
            f"{count:,} {source}"
            for count, source in (
                (self.from_data, "from the data"),
                (self.parsed, "parsed"),
                (self.balanced, "balanced"),
            )
            if count
        ]
        noun = "sentence" if total == 1 else "sentences"
        unfit = f"; {self.unfit:,} parses of the data do not fit the tokens" if self.unfit else ""
        return f"{total:,} {noun}: {', '.join(parts) or 'no trees'}{unfit}"


class TreeSource:
    """Finds a tree for every sentence: that of the data, else the parser's, else a balanced one.

    Args:
        kind: a name of `TREE_KINDS`.
        parser: a name of `PARSERS`; None: sentences without a parse get balanced trees.
            Default: None.
        cache: keeps what the parser made. Default: None, nothing is kept.

    Attributes:
        report: counts where the trees came from.

    Raises:
        ConfigError: the parser is unknown.
    """

    def __init__(
        self, kind: str, parser: str | None = None, cache: TreeCache | None = None
    ) -> None:
        if parser is not None and parser not in PARSERS:
            raise ConfigError(unknown_name("parser", parser, PARSERS))
        self.kind_name, self.kind, self.parser = kind, TREE_KINDS[kind], parser
        self.cache = cache
        self.report = TreeReport()
        self._loaded: Parser | None = None
        self._lock = Lock()
        self._known: dict[tuple[str, ...], Tree] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of a model loads its own parser when it needs one.
        return TreeSource, (self.kind_name, self.parser)

    @contextmanager
    def known_trees(self, sentences: Sentences, from_data: Sequence[Tree | None]) -> Iterator[None]:
        """Inside the block, `trees` uses those of the data for these sentences."""
        pairs = zip(map(tuple, sentences), from_data, strict=True)
        self._known = {words: tree for words, tree in pairs if tree is not None}
        try:
            yield
        finally:
            self._known = {}

    def trees(
        self,
        sentences: Sentences,
        from_data: Sequence[Tree | None] = (),
        max_length: int | None = None,
    ) -> list[Tree]:
        """Returns the tree of every sentence.

        Args:
            sentences: the words of each.
            from_data: the trees that the data has for them, None where it has none. Default: none.
            max_length: sentences of this length may have been truncated, and their trees are then.

        Raises:
            MissingExtraError: the parser is needed and not installed.
        """
        known = list(from_data) or [self._known.get(tuple(words)) for words in sentences]
        trees: list[Tree | None] = [
            self._fitting(tree, len(words), max_length)
            for words, tree in zip(sentences, known, strict=True)
        ]
        missing = [place for place, tree in enumerate(trees) if tree is None]
        self.report.from_data += len(trees) - len(missing)
        if self.parser is None:
            self.report.balanced += len(missing)
            made = [self.kind.balanced(len(sentences[place])) for place in missing]
        else:
            self.report.parsed += len(missing)
            made = self._parsed([sentences[place] for place in missing])
        for place, tree in zip(missing, made, strict=True):
            trees[place] = tree
        return [tree for tree in trees if tree is not None]

    def _fitting(self, tree: Tree | None, tokens: int, max_length: int | None) -> Tree | None:
        if tree is None or len(tree) == tokens:
            return tree
        if tokens == max_length and len(tree) > tokens:
            return self.kind.truncated(tree, tokens)
        self.report.unfit += 1
        return None

    def _parsed(self, sentences: Sentences) -> list[Tree]:
        if not sentences or self.parser is None:
            return []
        with self._lock:  # several threads may use one model
            if self._loaded is None:
                self._loaded = PARSERS[self.parser]()
            parser = self._loaded
            if self.cache is None:
                heads = parser.dependencies(sentences)
            else:
                heads = self.cache.look_up(sentences, parser.dependencies, parser.version)
        return [self.kind.from_dependencies(tree) for tree in heads]

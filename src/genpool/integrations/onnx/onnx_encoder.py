"""An exported sentence encoder, run by onnxruntime.

The inputs of the graph are padded arrays of ids, made from a batch:

    word_ids  (batch, time)            vocabulary id of each token
    mask      (batch, time)            True at real tokens
    letters   (batch, time, longest)   ids of its characters, 0 where there is none; only where the
                                       model reads characters
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from genpool.errors import ConfigError, FolderError, InputError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.integrations.onnx.folder import read_config
from genpool.integrations.onnx.graph import ONNX_FILE, OUTPUT, Feeds, OnnxSession
from genpool.saving.storage import CONFIG, TOKENIZER, read_tokenizer_file
from genpool.text import Batch, TextPipeline
from genpool.text.vocabulary import CharacterNgrams

#: the kind of the exported folder, and the key of the sizes in the graph's metadata
KIND, SIZES = "SentenceEncoder", "genpool"
#: names of the graph's inputs, part of the exported format
WORD_IDS, MASK, CHARACTER_IDS = "word_ids", "mask", "letters"
#: data type and number of dimensions of the inputs
_INPUTS = {WORD_IDS: ("int64", 2), MASK: ("bool", 2), CHARACTER_IDS: ("int64", 3)}
#: types of the settings that the text needs
_SETTINGS: dict[str, tuple[type, ...]] = {
    "characters": (str,),
    "sentence_ends": (bool,),
    "max_length": (int, type(None)),
    "sizes": (dict,),
    "lower_case_fallback": (bool,),
    "folding": (bool,),
    "ngram_buckets": (int,),
    "ngram_sizes": (list,),
}
#: character ids of one run, padding included: one very long word pads every word of its batch
MAX_PADDED_CHARACTERS = 1 << 18


class OnnxEncoder(SentenceVectors):
    """A sentence encoder that `export` wrote, run by onnxruntime on the CPU.

    It encodes and compares sentences as `genpool.SentenceEncoder` does (`encode`, `encode_stream`,
    `similarity`), without PyTorch's model. Make it with `from_pretrained`.

    Args:
        text: turns sentences into ids.
        session: the graph.
        output_dim: dimensions of a sentence vector.

    Example:
        >>> model = OnnxEncoder.from_pretrained("my-model-onnx")
        >>> vectors = model.encode(["A man sleeps.", "A person rests."])   # (2, output_dim)
    """

    def __init__(self, text: TextPipeline, session: OnnxSession, output_dim: int) -> None:
        self.text, self.session = text, session
        self.reads_characters = CHARACTER_IDS in session.inputs
        self._output_dim = output_dim

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Self:
        """Loads a folder that `export` wrote. Nothing in it is ever run as code.

        Args:
            path: the folder.

        Returns:
            The encoder.

        Raises:
            FolderError: the folder is missing, incomplete, damaged, or of another kind.
            MissingExtraError: onnxruntime is not installed.

        Example:
            >>> model = OnnxEncoder.from_pretrained("my-model-onnx")
        """
        folder = Path(path)
        config = read_config(folder, KIND, (ONNX_FILE, TOKENIZER))
        text = _load_text(folder, config)
        session = OnnxSession(folder / ONNX_FILE)
        return cls(text, session, _checked_output_dim(folder, config, text, session))

    @property
    def output_dim(self) -> int:
        """The dimension of a sentence vector."""
        return self._output_dim

    @property
    def device(self) -> torch.device:
        """Always the CPU."""
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        """Always float32."""
        return torch.float32

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim) of tokenized sentences, as one batch."""
        batch = self.text.batch(sentences)
        longest = int(batch.character_counts.max()) if len(batch.character_counts) else 0
        padded = batch.mask.numel() * longest if self.reads_characters else 0
        if len(sentences) > 1 and padded > MAX_PADDED_CHARACTERS:
            half = len(sentences) // 2
            return torch.cat(
                [self.encode_tokenized(sentences[:half]), self.encode_tokenized(sentences[half:])]
            )
        return torch.from_numpy(self.session(feeds(padded_inputs(batch, self.reads_characters))))


def input_names(reads_characters: bool) -> list[str]:
    """Returns the names of the inputs in order."""
    return [WORD_IDS, MASK, CHARACTER_IDS][: 3 if reads_characters else 2]


def padded_inputs(batch: Batch, reads_characters: bool) -> list[Tensor]:
    """Returns the inputs of one batch, each with at least one column: a graph cannot take none."""
    mask, ids = batch.mask, batch.ids  # (batch, time)
    missing = max(0, 1 - mask.shape[1])
    ids, mask = (functional.pad(columns, (0, missing)) for columns in (ids, mask))
    if not reads_characters:
        return [ids, mask]
    counts = batch.character_counts  # (distinct,)
    longest = max(1, int(counts.max())) if len(counts) else 1
    is_character = torch.arange(longest) < counts.unsqueeze(1)  # (distinct, longest)
    # The last row is the padding token, which has no characters.
    by_word = torch.zeros(len(counts) + 1, longest, dtype=torch.long)
    by_word[:-1][is_character] = batch.character_ids
    index = functional.pad(batch.index, (0, missing))  # (batch, time)
    character_ids = by_word[index.masked_fill(~mask, len(counts))]  # (batch, time, longest)
    return [ids, mask, character_ids]


def feeds(inputs: list[Tensor]) -> Feeds:
    """Returns the inputs as arrays for onnxruntime."""
    arrays = (np.ascontiguousarray(tensor.numpy()) for tensor in inputs)
    return dict(zip(_INPUTS, arrays, strict=False))


def _load_text(folder: Path, config: dict[str, Any]) -> TextPipeline:
    for name, allowed in _SETTINGS.items():
        if not isinstance(config.get(name), allowed):
            actual = type(config.get(name)).__name__
            raise FolderError(
                f"{folder / CONFIG} is damaged: {name} is {actual}, expected {allowed[0].__name__}."
            )
    tokenizer = read_tokenizer_file(folder / TOKENIZER)[0]
    buckets = config["ngram_buckets"]
    try:
        return TextPipeline.from_stored(
            tokenizer,
            config["characters"],
            config["sentence_ends"],
            config["max_length"],
            config["lower_case_fallback"],
            config["folding"],
            CharacterNgrams(buckets, config["ngram_sizes"]) if buckets else None,
        )
    except (ConfigError, InputError) as error:
        raise FolderError(f"{folder} cannot be used: {error}") from error


def _checked_output_dim(
    folder: Path, config: dict[str, Any], text: TextPipeline, session: OnnxSession
) -> int:
    """The dimension of the vectors, once graph, config and tokenizer are known to be one export."""
    reads_characters = CHARACTER_IDS in session.inputs
    expected = {name: _INPUTS[name] for name in input_names(reads_characters)}
    shape = session.outputs.get(OUTPUT, [])
    if session.inputs != expected or len(shape) != 2 or not isinstance(shape[1], int):
        raise FolderError(
            f"{folder / ONNX_FILE} has the inputs {session.inputs} and the outputs "
            f"{session.outputs}; expected {expected} and {OUTPUT} (batch, width). Was it exported "
            "by genpool?"
        )
    actual = {
        "words": len(text.vocabulary),
        "characters": len(text.characters) if reads_characters else 0,
        "output_dim": shape[1],
    }
    try:
        in_graph = json.loads(session.metadata.get(SIZES, "null"))
    except (ValueError, RecursionError):
        in_graph = None
    for file, recorded in ((CONFIG, config["sizes"]), (ONNX_FILE, in_graph)):
        if recorded != actual:
            raise FolderError(
                f"{folder}: {file} says {recorded}, the files beside it {actual}. Were files of "
                "two exports mixed?"
            )
    return shape[1]

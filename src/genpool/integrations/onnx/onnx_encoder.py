"""The exported folder, whose README.md (page.toml here) describes the inputs of its graph, and the
encoder that runs it by onnxruntime. A graph is data: opening the folder runs no code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional

from genpool.disk.atomic import read_consistently
from genpool.disk.folder_format import FolderFormat, file_checksum
from genpool.errors import FolderError, GenpoolError
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.integrations.onnx.graph import ONNX_DATA, ONNX_FILE, OnnxSession
from genpool.saving.storage import CARD, CONFIG, MODEL, ONNX_FORMAT, TOKENIZER, read_tokenizer_file
from genpool.text import Batch, TextPipeline
from genpool.text.vocabulary import CharacterNgrams

#: the kind of folder that is read here; a transformer's graph is for onnxruntime alone
KIND = "SentenceEncoder"
#: names of the graph's inputs, part of the exported format
WORD_IDS, MASK, CHARACTER_IDS = "word_ids", "mask", "letters"
#: character ids of one run, padding included: one very long word pads every word of its batch
MAX_PADDED_CHARACTERS = 1 << 18


def _hint(folder: Path, content: Mapping[str, Any]) -> str:
    if content.get("format") == MODEL.name:
        return f" It is a saved {content.get('kind')}; export it: genpool export {folder} OUT."
    return f" Its model type is {content['model_type']}." if "model_type" in content else ""


EXPORT = FolderFormat(
    ONNX_FORMAT,
    "an ONNX export of genpool",
    (CONFIG, ONNX_FILE, ONNX_DATA, TOKENIZER, CARD),
    _hint,
)


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

    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, text: TextPipeline, session: OnnxSession, output_dim: int) -> None:
        self.text, self.session = text, session
        self.reads_characters = CHARACTER_IDS in session.input_names
        self.output_dim = output_dim

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Self:
        """Loads a folder that `export` wrote. Nothing in it is ever run as code.

        Raises:
            FolderError: the folder is missing, incomplete, damaged, or of another kind.
            MissingExtraError: onnxruntime is not installed.

        Example:
            >>> model = OnnxEncoder.from_pretrained("my-model-onnx")
        """
        return read_consistently(path, lambda: cls._open(Path(path)))

    @classmethod
    def _open(cls, folder: Path) -> Self:
        try:
            config = EXPORT.read(folder)
        except OSError as error:
            raise FolderError(f"{folder / CONFIG} cannot be read: {error}") from None
        if (kind := config.get("kind")) != KIND:
            raise FolderError(
                f"{folder} contains the graph of a {kind}; expected the ONNX export of a {KIND}. "
                f"Run it with onnxruntime: {folder / CARD} lists its inputs."
            )
        EXPORT.require_files(folder, (ONNX_FILE, TOKENIZER))
        EXPORT.require_checksums(folder, config, checksums(folder))
        tokenizer, _ = read_tokenizer_file(folder)
        try:
            buckets = config["ngram_buckets"]
            text = TextPipeline.from_stored(
                tokenizer,
                config["characters"],
                config["sentence_ends"],
                config["max_length"],
                config["lower_case_fallback"],
                config["folding"],
                CharacterNgrams(buckets, config["ngram_sizes"]) if buckets else None,
            )
            output_dim = int(config["output_dim"])
        except (KeyError, TypeError, ValueError, GenpoolError) as error:
            raise FolderError(
                f"{folder / CONFIG} cannot be used: {type(error).__name__}: {error}"
            ) from error
        return cls(text, OnnxSession(folder / ONNX_FILE), output_dim)

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim) of tokenized sentences, as one batch."""
        batch = self.text.batch(sentences)
        longest = int(batch.character_counts.max()) if len(batch.character_counts) else 0
        padded = batch.mask.numel() * longest if self.reads_characters else 0
        if len(sentences) > 1 and padded > MAX_PADDED_CHARACTERS:
            half = len(sentences) // 2
            halves = sentences[:half], sentences[half:]
            return torch.cat([self.encode_tokenized(part) for part in halves])
        return torch.from_numpy(self.session(padded_inputs(batch, self.reads_characters)))


def padded_inputs(batch: Batch, reads_characters: bool) -> dict[str, Tensor]:
    """Returns the inputs of one batch, each with at least one column: a graph cannot take none."""
    missing = max(0, 1 - batch.mask.shape[1])
    ids, mask = (functional.pad(columns, (0, missing)) for columns in (batch.ids, batch.mask))
    inputs = {WORD_IDS: ids, MASK: mask}  # (batch, time)
    if reads_characters:
        counts = batch.character_counts  # (distinct,)
        longest = max(1, int(counts.max())) if len(counts) else 1
        is_character = torch.arange(longest) < counts.unsqueeze(1)  # (distinct, longest)
        # The last row is the padding token, which has no characters.
        by_word = torch.zeros(len(counts) + 1, longest, dtype=torch.long)
        by_word[:-1][is_character] = batch.character_ids
        index = functional.pad(batch.index, (0, missing))  # (batch, time)
        inputs[CHARACTER_IDS] = by_word[index.masked_fill(~mask, len(counts))]
    return inputs


def checksums(folder: Path) -> dict[str, str]:
    """Returns the checksums of the files that belong to the config."""
    names = (ONNX_FILE, ONNX_DATA, TOKENIZER)
    return {name: file_checksum(folder / name) for name in names if (folder / name).is_file()}

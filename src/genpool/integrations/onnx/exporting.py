"""A sentence encoder as an ONNX folder."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from genpool.integrations.onnx.card import sentence_card
from genpool.integrations.onnx.folder import new_folder, write_config
from genpool.integrations.onnx.inputs import input_names
from genpool.integrations.onnx.traced_model import TracedSentenceEncoder, TracedWordEncoder
from genpool.integrations.onnx.trials import example_inputs, sentence_trials
from genpool.integrations.onnx.writing import (
    DynamicDims,
    GraphSource,
    as_float32_on_cpu,
    write_checked_graph,
)
from genpool.model import SentenceEncoder
from genpool.saving.quantization import dequantize_weights, quantize_weights
from genpool.saving.storage import CARD, TOKENIZER

KIND = "SentenceEncoder"
#: the key of the sizes in the graph's metadata
SIZES = "genpool"
#: the dynamic dimensions of an input, by its number of dimensions
_DYNAMIC_DIMS: dict[int, DynamicDims] = {
    2: {0: "batch", 1: "time"},
    3: {0: "batch", 1: "time", 2: "longest_word"},
}


@dataclass(frozen=True)
class Export:
    """The result of an export.

    Attributes:
        path: the folder that was written.
        difference: the largest difference from PyTorch that the check found; with int8 the largest
            1 - cosine.

    Example:
        >>> export(model, "my-model-onnx").difference < 1e-5
        True
    """

    path: Path
    difference: float


def export(model: SentenceEncoder, folder: str | Path, int8: bool = False) -> Export:
    """Writes a sentence encoder as one ONNX graph: word and character ids in, vectors out.

    The graph is run and compared with PyTorch before the folder is replaced: single words and long
    sentences, unknown words, sentences without tokens, padding on both sides.

    Args:
        model: the sentence encoder; of a classifier, its `encoder`. It is not changed.
        folder: a new or empty folder, or an earlier export, which stays complete until the new one
            is.
        int8: store matrices in 8 bits; the vectors then have a cosine of at least 0.99 to the
            model's, on every CPU. Default: False.

    Returns:
        The folder, and the largest difference from PyTorch.

    Raises:
        ExportError: the model cannot be exported, or the graph returns other vectors.
        FolderError: the folder contains something other than an ONNX export.
        InputError: the encoder is of a class that has no form for a graph.
        MissingExtraError: onnx or onnxruntime is not installed.

    Example:
        >>> export(SentenceEncoder.from_pretrained("my-model"), "my-model-onnx")
        >>> vectors = OnnxEncoder.from_pretrained("my-model-onnx").encode(["A man sleeps."])
    """
    plain = as_float32_on_cpu(model)
    traced = TracedSentenceEncoder(plain, int8)
    reads_characters = traced.reads_characters
    inputs = example_inputs(plain, reads_characters)
    source = GraphSource(
        traced if reads_characters else TracedWordEncoder(traced),
        inputs,
        input_names(reads_characters),
        [_DYNAMIC_DIMS[tensor.dim()] for tensor in inputs],
        {SIZES: json.dumps(export_sizes(model, reads_characters))},
    )
    with new_folder(folder) as fresh:
        difference = write_checked_graph(
            source,
            fresh,
            int8,
            trials=lambda: sentence_trials(plain, reads_characters),
            float_trials=lambda: sentence_trials(with_quantized_words(plain), reads_characters),
        )
        _write_other_files(model, fresh, reads_characters, int8, difference)
    return Export(Path(folder), difference)


def with_quantized_words(model: SentenceEncoder) -> SentenceEncoder:
    """Returns a copy whose word vectors are rounded to 8 bits."""
    rounded = copy.deepcopy(model)
    words = dequantize_weights(quantize_weights({"words": rounded.embedding.words}))["words"]
    with torch.no_grad():
        rounded.embedding.words.copy_(words)
    return rounded


def export_sizes(model: SentenceEncoder, reads_characters: bool) -> dict[str, Any]:
    """Returns the sizes on which the graph and the files beside it must agree."""
    return {
        "words": len(model.text.vocabulary),
        "characters": len(model.text.characters) if reads_characters else 0,
        "output_dim": model.output_dim,
    }


def _write_other_files(
    model: SentenceEncoder, folder: Path, reads_characters: bool, int8: bool, difference: float
) -> None:
    text = model.text
    write_config(
        folder,
        KIND,
        {
            "int8": int8,
            "sizes": export_sizes(model, reads_characters),
            "characters": text.characters.characters,
            "sentence_ends": text.sentence_ends,
            "max_length": text.max_length,
            "lower_case_fallback": text.vocabulary.lower_case_fallback,
        },
    )
    (folder / TOKENIZER).write_text(text.to_tokenizers().to_str(pretty=True), encoding="utf-8")
    card = sentence_card(model, input_names(reads_characters), int8, difference)
    (folder / CARD).write_text(card, encoding="utf-8")

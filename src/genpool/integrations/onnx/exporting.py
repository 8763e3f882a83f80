"""A sentence encoder as an ONNX folder."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from genpool.integrations.onnx.card import sentence_card
from genpool.integrations.onnx.checking import check_graph
from genpool.integrations.onnx.folder import new_folder, write_config
from genpool.integrations.onnx.inputs import OUTPUT, input_names
from genpool.integrations.onnx.session import GRAPH, Graph
from genpool.integrations.onnx.traced_model import SentenceGraph, UnspelledGraph
from genpool.integrations.onnx.trials import (
    example_inputs,
    on_cpu_in_single_precision,
    sentence_trials,
)
from genpool.integrations.onnx.writing import Free, round_graph, write_graph
from genpool.model import SentenceEncoder
from genpool.saving.quantization import dequantize_weights, quantize_weights
from genpool.saving.storage import CARD, TOKENIZER
from genpool.text.vocabulary import UNKNOWN

KIND = "SentenceEncoder"
#: the name under which the sizes stand in the graph's metadata
SIZES = "genpool"
_FREE: dict[int, Free] = {
    2: {0: "batch", 1: "time"},
    3: {0: "batch", 1: "time", 2: "longest_word"},
}


@dataclass(frozen=True)
class Export:
    """What was written: the largest difference from PyTorch (with int8, of 1 - cosine)."""

    path: Path
    difference: float


def export(model: SentenceEncoder, folder: str | Path, int8: bool = False) -> Export:
    """Writes the whole model as one graph: numbers of words and letters in, vectors out.

    The graph is run and compared with PyTorch before the folder takes its place: single words and
    long sentences, unknown words, sentences without tokens, padding on both sides.

    Args:
        folder: a new or empty folder, or an earlier export, which stays whole until this is done.
        int8: matrices in 8 bits; vectors then have a cosine of at least 0.99 to the model's.

    Example:
        >>> export(SentenceEncoder.from_pretrained("my-model"), "my-model-onnx")
        >>> vectors = OnnxEncoder.from_pretrained("my-model-onnx").encode(["A man sleeps."])
    """
    plain = on_cpu_in_single_precision(model)
    graph = SentenceGraph(plain, int8)
    spelled = graph.reads_letters
    inputs = example_inputs(plain, spelled)
    with new_folder(folder) as fresh:
        path = fresh / ("float.onnx" if int8 else GRAPH)
        write_graph(
            graph if spelled else UnspelledGraph(graph),
            inputs,
            input_names(spelled),
            [_FREE[each.dim()] for each in inputs],
            OUTPUT,
            path,
            {SIZES: json.dumps(sizes_of(model, spelled))},
        )
        exact = with_rounded_table(plain) if int8 else plain
        difference = check_graph(Graph(path), sentence_trials(exact, spelled))
        if int8:
            round_graph(path, fresh / GRAPH)
            for each in fresh.glob("float*"):
                each.unlink()
            rounded = Graph(fresh / GRAPH)
            difference = check_graph(rounded, sentence_trials(plain, spelled), rounded=True)
        _write_rest(model, fresh, spelled, int8, difference)
    return Export(Path(folder), difference)


def with_rounded_table(model: SentenceEncoder) -> SentenceEncoder:
    """A copy, whose word vectors are those that 8 bits can say."""
    rounded = copy.deepcopy(model)
    words = dequantize_weights(quantize_weights({"words": rounded.embedding.words}))["words"]
    with torch.no_grad():
        rounded.embedding.words.copy_(words)
    return rounded


def sizes_of(model: SentenceEncoder, spelled: bool) -> dict[str, Any]:
    """What the graph and the files beside it must agree on."""
    return {
        "words": len(model.text.vocabulary),
        "characters": len(model.text.characters) if spelled else 0,
        "output_dim": model.output_dim,
    }


def _write_rest(
    model: SentenceEncoder, folder: Path, spelled: bool, int8: bool, difference: float
) -> None:
    text, vocabulary = model.text, model.text.vocabulary
    write_config(
        folder,
        KIND,
        {
            "int8": int8,
            "sizes": sizes_of(model, spelled),
            "characters": text.characters.characters,
            "sentence_ends": text.sentence_ends,
            "max_length": text.max_length,
        },
    )
    tokenizer = text.tokenizer.to_tokenizers(vocabulary.ids, vocabulary.words[UNKNOWN])
    (folder / TOKENIZER).write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    card = sentence_card(model, input_names(spelled), int8, difference)
    (folder / CARD).write_text(card, encoding="utf-8")

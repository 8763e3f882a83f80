"""A sentence encoder as an ONNX folder."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from genpool.inference.sentence_vectors import evaluation_mode
from genpool.integrations.onnx import folder as pages
from genpool.integrations.onnx.folder import new_folder, write_card, write_config
from genpool.integrations.onnx.graph import (
    Export,
    GraphSource,
    Trial,
    as_float32_on_cpu,
    write_checked_graph,
)
from genpool.integrations.onnx.onnx_encoder import KIND, SIZES, feeds, input_names, padded_inputs
from genpool.integrations.onnx.traced import TracedSentenceEncoder
from genpool.model import SentenceEncoder
from genpool.saving.storage import TOKENIZER
from genpool.saving.weights_file import dequantize_weights, quantize_weights
from genpool.text import TextPipeline
from genpool.text.vocabulary import SPECIAL_WORDS

if TYPE_CHECKING:
    from genpool.integrations.sentence_transformers.encoder import SentenceTransformerEncoder

#: the dynamic dimensions of an input, by its number of dimensions
_DYNAMIC_DIMS: dict[int, Mapping[int, str]] = {
    2: {0: "batch", 1: "time"},
    3: {0: "batch", 1: "time", 2: "longest_word"},
}
#: characters of scripts that few vocabularies contain together
UNKNOWN_WORD = "Zzyzx\u0436\u3042\u05d0-unheard"
USE = """
## Use

```python
from genpool.integrations.onnx import OnnxEncoder

model = OnnxEncoder.from_pretrained("path/to/this/folder")
vectors = model.encode(["A man sleeps.", "A person rests."])
```

`OnnxEncoder` makes the inputs of the graph from sentences. The tokenizer of `tokenizer.json` only
splits them: the ids are looked up as the table below says.
"""


def export(
    model: SentenceEncoder | SentenceTransformerEncoder, folder: str | Path, int8: bool = False
) -> Export:
    """Writes a sentence encoder as one ONNX graph: word and character ids in, vectors out.

    The graph is run and compared with PyTorch before the folder is replaced: single words and long
    sentences, unknown words, sentences without tokens, padding on both sides.

    Args:
        model: the sentence encoder; of a classifier, its `encoder`; or a folder of
            sentence-transformers, loaded with `genpool.integrations.load_encoder.load_encoder`. It
            is not changed.
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
    if not isinstance(model, SentenceEncoder):
        return model.export_onnx(folder, int8)
    plain = as_float32_on_cpu(model)
    traced = TracedSentenceEncoder(plain, int8)
    reads_characters = traced.reads_characters
    sizes = {  # on which the graph and the files beside it must agree
        "words": len(model.text.vocabulary),
        "characters": len(model.text.characters) if reads_characters else 0,
        "output_dim": model.output_dim,
    }
    inputs = example_inputs(plain, reads_characters)
    source = GraphSource(
        traced,
        inputs,
        input_names(reads_characters),
        [_DYNAMIC_DIMS[tensor.dim()] for tensor in inputs],
        {SIZES: json.dumps(sizes)},
    )
    with new_folder(folder) as fresh:
        difference = write_checked_graph(
            source,
            fresh,
            int8,
            trials=lambda: sentence_trials(plain, reads_characters),
            float_trials=lambda: sentence_trials(with_quantized_tables(plain), reads_characters),
        )
        settings = {"int8": int8, "sizes": sizes}
        _write_other_files(model, fresh, settings, source.input_names, difference)
    return Export(Path(folder), difference)


def with_quantized_tables(model: SentenceEncoder) -> SentenceEncoder:
    """Returns a copy whose vectors of words and n-grams are rounded to 8 bits."""
    rounded = copy.deepcopy(model)
    backing = rounded.embedding.backing
    tables = [rounded.embedding.words, *([] if backing is None else [backing.table])]
    with torch.no_grad():
        for table in tables:
            table.copy_(dequantize_weights(quantize_weights({"rows": table}))["rows"])
    return rounded


def _write_other_files(
    model: SentenceEncoder,
    folder: Path,
    settings: Mapping[str, Any],
    inputs: Sequence[str],
    difference: float,
) -> None:
    """Writes config, tokenizer and page."""
    text, vocabulary, embedding = model.text, model.text.vocabulary, model.settings.embedding
    text_settings = {
        "characters": text.characters.characters,
        "sentence_ends": text.sentence_ends,
        "max_length": text.max_length,
        "lower_case_fallback": vocabulary.lower_case_fallback,
        "folding": vocabulary.folding,
        "ngram_buckets": embedding.ngram_buckets,
        "ngram_sizes": list(embedding.ngram_sizes),
    }
    write_config(folder, KIND, {**settings, **text_settings})
    tokenizer = text.to_tokenizers().to_str(pretty=True)
    (folder / TOKENIZER).write_text(tokenizer, encoding="utf-8", newline="\n")
    parts = model.settings
    title = model.notes.get("title") or f"{parts.encoder.name}, {parts.pooling.name} pooling"
    form = pages.LOWER_CASE if vocabulary.lower_case_fallback else pages.AS_WRITTEN
    form = pages.FOLDED if vocabulary.folding else form
    letters = pages.CHARACTERS if text.characters.spells_known else pages.NGRAMS
    int8, title = settings["int8"], f"{title}, as ONNX"
    write_card(folder, title, inputs, model.output_dim, int8, difference, USE, form, letters)


def sample_sentences(text: TextPipeline) -> dict[str, list[list[str]]]:
    """Returns batches of tokenized sentences by description; always the same for one model."""
    known = text.vocabulary.words[len(SPECIAL_WORDS) :] or (UNKNOWN_WORD,)
    random = np.random.default_rng(0)

    def sentence(length: int) -> list[str]:
        return [known[word_id] for word_id in random.integers(len(known), size=length)]

    return {
        "sentences of several lengths": [sentence(length) for length in (5, 1, 12, 3)],
        "one word": [sentence(1)],
        "one sentence": [sentence(7)],
        "an unknown word": [[*sentence(2), UNKNOWN_WORD, *sentence(1)], [UNKNOWN_WORD]],
        "a sentence without tokens among others": [sentence(4), [], sentence(2)],
        "sentences without tokens": [[], []],
        "long sentences": [sentence(length) for length in (60, 41, 2, 59, 60, 17, 8)],
        "a very long word": [[UNKNOWN_WORD * 5], sentence(3)],
    }


def sentence_trials(model: SentenceEncoder, reads_characters: bool) -> Iterator[Trial]:
    """Yields every batch as it is, and once more with padding on all sides."""
    for name, words in sample_sentences(model.text).items():
        batch = model.text.batch(words)
        # Not around the yield: after a failed trial, gradients would stay disabled.
        with evaluation_mode():
            expected = model(batch).vector.numpy()
        inputs = padded_inputs(batch, reads_characters)
        yield Trial(name, feeds(inputs), expected)
        yield Trial(f"{name}, with padding", feeds(_with_padding(inputs)), expected)


def _with_padding(inputs: Sequence[Tensor]) -> list[Tensor]:
    """Two columns of padding before the sentences and one behind; two more characters per word."""
    columns = (2, 1)
    return [
        functional.pad(tensor, (0, 2, *columns) if tensor.dim() == 3 else columns)
        for tensor in inputs
    ]


def example_inputs(model: SentenceEncoder, reads_characters: bool) -> list[Tensor]:
    """Returns inputs to trace the graph with: two or more in every dynamic dimension."""
    words = sample_sentences(model.text)["sentences of several lengths"]
    inputs = padded_inputs(model.text.batch(words), reads_characters)
    return _with_padding(inputs) if reads_characters else inputs

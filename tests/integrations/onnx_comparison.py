"""What the tests of exported graphs share: sentences, and the padded PyTorch model to compare."""

import numpy as np
from numpy.typing import NDArray

from genpool import SentenceEncoder
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.tensors.modules import fast_paths

#: known and unknown words, unknown letters, one token, none, and a long sentence
SENTENCES = [
    "the man sleeps.",
    "",
    "A dog, not two, runs!",
    "Zzyzx \u0436\u3042 unheard",
    "dog",
    "the red dog runs " * 12,
]


def padded_vectors(model: SentenceEncoder, sentences: list[str]) -> NDArray[np.float32]:
    """By the equations as they are written, on padded tensors, without any fast path."""
    with fast_paths(False):
        return np.asarray(model.encode(sentences))


def largest_difference(one: SentenceVectors, other: SentenceEncoder, batch_size: int = 64) -> float:
    actual = np.asarray(one.encode(SENTENCES, batch_size))
    return float(np.abs(actual - padded_vectors(other, SENTENCES)).max())

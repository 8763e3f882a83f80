"""The sentences on which an export is compared with its model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor
from torch.nn import functional

from genpool.inference.batching import evaluation_mode
from genpool.integrations.onnx.checking import Trial
from genpool.integrations.onnx.inputs import feeds, padded_inputs
from genpool.model import SentenceEncoder
from genpool.text import TextPipeline
from genpool.text.vocabulary import SPECIAL_WORDS

#: characters of scripts that few vocabularies contain together
UNKNOWN_WORD = "Zzyzx\u0436\u3042\u05d0-unheard"


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

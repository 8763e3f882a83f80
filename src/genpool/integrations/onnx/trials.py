"""The sentences on which an export is compared with its model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from genpool.inference.batching import evaluation_mode
from genpool.integrations.onnx.checking import Trial
from genpool.integrations.onnx.inputs import feeds, padded_inputs
from genpool.model import SentenceEncoder
from genpool.text import TextPipeline
from genpool.text.vocabulary import SPECIAL_WORDS

#: letters of writings that few vocabularies hold together
UNHEARD = "Zzyzx\u0436\u3042\u05d0-unheard"


def sample_sentences(text: TextPipeline) -> dict[str, list[list[str]]]:
    """Batches of words by what is special about them; the same ones for the same model."""
    known = text.vocabulary.words[len(SPECIAL_WORDS) :] or (UNHEARD,)
    choose = np.random.default_rng(0)

    def sentence(length: int) -> list[str]:
        return [known[number] for number in choose.integers(len(known), size=length)]

    return {
        "sentences of several lengths": [sentence(length) for length in (5, 1, 12, 3)],
        "one word": [sentence(1)],
        "one sentence": [sentence(7)],
        "an unknown word": [[*sentence(2), UNHEARD, *sentence(1)], [UNHEARD]],
        "a sentence without tokens among others": [sentence(4), [], sentence(2)],
        "sentences without tokens": [[], []],
        "long sentences": [sentence(length) for length in (60, 41, 2, 59, 60, 17, 8)],
        "letters without end": [[UNHEARD * 5], sentence(3)],
    }


def sentence_trials(model: SentenceEncoder, spelled: bool) -> Iterator[Trial]:
    """Every batch as it is, and once more with padding all round."""
    for name, words in sample_sentences(model.text).items():
        batch = model.text.batch(words)
        # Not around the yield: a trial that fails leaves this function there, without gradients.
        with evaluation_mode(model):
            expected = model(batch).vector.numpy()
        inputs = padded_inputs(batch, spelled)
        yield Trial(name, feeds(inputs), expected)
        yield Trial(f"{name}, with padding", feeds(_surrounded(inputs)), expected)


def _surrounded(inputs: Sequence[Tensor]) -> list[Tensor]:
    """Two columns of padding before the sentences and one behind them; two letters more."""
    around = (2, 1)
    return [functional.pad(each, (0, 2, *around) if each.dim() == 3 else around) for each in inputs]


def example_inputs(model: SentenceEncoder, spelled: bool) -> list[Tensor]:
    """Inputs to trace the graph with: two or more of everything that may have any size."""
    words = sample_sentences(model.text)["sentences of several lengths"]
    inputs = padded_inputs(model.text.batch(words), spelled)
    return _surrounded(inputs) if spelled else inputs


def on_cpu_in_single_precision(model: SentenceEncoder) -> SentenceEncoder:
    """The model itself where it is so already, else a copy."""
    if model.device.type == "cpu" and model.dtype is torch.float32:
        return model
    return deepcopy(model).cpu().float()

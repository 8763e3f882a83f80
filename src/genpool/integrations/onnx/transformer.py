"""A transformer with a pooling of genpool on top, as an ONNX folder."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.integrations.onnx.folder import new_folder, write_card, write_config
from genpool.integrations.onnx.graph import (
    OUTPUT,
    Export,
    GraphSource,
    Trial,
    as_float32_on_cpu,
    eval_mode,
    write_checked_graph,
)
from genpool.integrations.onnx.traced import traced_pooling
from genpool.integrations.transformers import core_pooling
from genpool.pooling import Pooling

KIND = "transformer"
INPUT_NAMES = ("input_ids", "attention_mask", "token_type_ids")
#: tokens of the longest sentence of the check, where the model allows as many
LONGEST_TRIAL_TOKENS = 40


class TracedTransformer(nn.Module):
    """Token ids in, pooled sentences out; `later` are modules behind the pooling."""

    def __init__(
        self, transformer: nn.Module, pooling: Pooling, later: Sequence[nn.Module]
    ) -> None:
        super().__init__()
        self.transformer, self.pooling = transformer, traced_pooling(pooling)
        self.later = nn.ModuleList(later)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Each (batch, time) -> (batch, output_dim)"""
        extra = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        output = self.transformer(
            input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **extra
        )
        pooled = self.pooling(output.last_hidden_state, attention_mask > 0)
        features = {OUTPUT: pooled.vector}
        for module in self.later:
            features = module(features)
        return cast(Tensor, features[OUTPUT])


def export_transformer(
    transformer: nn.Module,
    pooling: nn.Module,
    folder: str | Path,
    int8: bool = False,
    tokenizer: Any = None,
    later: Sequence[nn.Module] = (),
) -> Export:
    """Writes a model of the `transformers` library and a pooling as one graph, and checks it.

    The inputs of the graph are input_ids, attention_mask and, where the model has them,
    token_type_ids, each (batch, time); its output is sentence_embedding (batch, output_dim).

    Args:
        transformer: an AutoModel, whose output has `last_hidden_state`. It is not changed.
        pooling: any pooling of `genpool.pooling` except gated pooling, with the input_dim of the
            model's states, or the `PoolingModule` of
            `genpool.integrations.sentence_transformers`.
        folder: a new or empty folder, or an earlier export, which stays complete until the new one
            is.
        int8: store matrices in 8 bits; the vectors then have a cosine of at least 0.99 to the
            model's, on every CPU. Default: False.
        tokenizer: a tokenizer of `transformers`, saved into the folder too. Default: None.
        later: modules of sentence-transformers that follow the pooling, such as Normalize.
            Default: none.

    Returns:
        The folder, and the largest difference from PyTorch.

    Raises:
        ExportError: the model cannot be exported, or the graph returns other vectors.
        FolderError: the folder contains something other than an ONNX export.
        InputError: model and pooling do not fit together.
        MissingExtraError: onnx or onnxruntime is not installed.

    Example:
        >>> transformer = AutoModel.from_pretrained("path/to/model")
        >>> export_transformer(transformer, GeneralizedPooling(384, heads=5), "out")
    """
    pooling = core_pooling(pooling)
    vocabulary = _check_parts(transformer, pooling)
    module = TracedTransformer(
        as_float32_on_cpu(transformer),
        as_float32_on_cpu(pooling),
        [as_float32_on_cpu(part) for part in later],
    )
    names = _input_names(transformer)
    allowed = getattr(transformer.config, "max_position_embeddings", None)
    longest = min(LONGEST_TRIAL_TOKENS, allowed or LONGEST_TRIAL_TOKENS)
    trials = list(_trials(module, names, vocabulary, longest))
    output_dim = trials[0].expected.shape[1]
    example = [torch.from_numpy(array) for array in trials[0].feeds.values()]
    source = GraphSource(module, example, names, [{0: "batch", 1: "time"}] * len(names))
    with new_folder(folder) as fresh:
        difference = write_checked_graph(source, fresh, int8, lambda: trials)
        settings = {"int8": int8, "inputs": list(names), "output_dim": output_dim}
        write_config(fresh, KIND, settings)
        title = f"{type(transformer).__name__} with {type(pooling).__name__}, as ONNX"
        write_card(fresh, title, names, output_dim, int8, difference)
        if tokenizer is not None:
            tokenizer.save_pretrained(fresh)
    return Export(Path(folder), difference)


def _input_names(transformer: nn.Module) -> Sequence[str]:
    has_types = getattr(transformer.config, "type_vocab_size", 0) or 0
    accepts = inspect.signature(transformer.forward).parameters
    return INPUT_NAMES if has_types and INPUT_NAMES[2] in accepts else INPUT_NAMES[:2]


def _check_parts(transformer: nn.Module, pooling: Pooling) -> int:
    """Raises InputError where the two do not fit together; returns the size of the vocabulary."""
    config = getattr(transformer, "config", None)
    vocabulary = getattr(config, "vocab_size", None)
    if not isinstance(vocabulary, int):
        raise InputError(
            f"{type(transformer).__name__} has no config.vocab_size; expected a text model of the "
            "transformers library (AutoModel.from_pretrained)."
        )
    width = getattr(config, "hidden_size", None)
    if width is not None and width != pooling.input_dim:
        raise InputError(
            f"the states of {type(transformer).__name__} have width {width}, the pooling was made "
            f"with input_dim={pooling.input_dim}."
        )
    return vocabulary


def _trials(
    module: TracedTransformer, names: Sequence[str], vocabulary: int, longest: int
) -> Iterator[Trial]:
    """Random tokens: several sentences, one, one token, a long batch, one without tokens."""
    random = torch.Generator().manual_seed(0)
    for lengths in ((5, 2, 9), (7,), (1,), (longest, 3, longest, 20, 1), (4, 0)):
        width = max(lengths)
        ids = torch.randint(vocabulary, (len(lengths), width), generator=random)
        counts = torch.tensor(lengths).clamp(max=width).unsqueeze(1)  # (batch, 1)
        mask = (torch.arange(width) < counts).long()  # (batch, time)
        inputs = [ids, mask, torch.zeros_like(ids)][: len(names)]
        with eval_mode(module):
            expected = module(*inputs).numpy()
        arrays = dict(zip(names, (tensor.numpy() for tensor in inputs), strict=True))
        yield Trial(f"sentences of {lengths} tokens", arrays, expected)

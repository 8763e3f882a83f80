"""A transformer with a pooling of genpool on top, as an ONNX folder."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.inference.batching import evaluation_mode
from genpool.integrations.onnx.card import page
from genpool.integrations.onnx.checking import Trial, check_graph
from genpool.integrations.onnx.exporting import Export
from genpool.integrations.onnx.folder import new_folder, write_config
from genpool.integrations.onnx.inputs import OUTPUT
from genpool.integrations.onnx.session import GRAPH, Graph
from genpool.integrations.onnx.traced_poolings import graph_pooling
from genpool.integrations.onnx.writing import round_graph, write_graph
from genpool.pooling import Pooling
from genpool.saving.storage import CARD

KIND = "transformer"
NAMES = ("input_ids", "attention_mask", "token_type_ids")


class SavesItself(Protocol):
    """A tokenizer of the `transformers` library."""

    def save_pretrained(self, folder: Any) -> Any: ...


class TransformerGraph(nn.Module):
    """Numbers of tokens in, pooled sentences out."""

    def __init__(self, transformer: nn.Module, pooling: Pooling) -> None:
        super().__init__()
        self.transformer, self.pooling = transformer, graph_pooling(pooling)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Each (batch, time) -> (batch, output_dim)"""
        more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        found = self.transformer(
            input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **more
        )
        pooled = self.pooling(found.last_hidden_state, attention_mask > 0)
        return cast(Tensor, pooled.vector)


def export_transformer(
    transformer: nn.Module,
    pooling: Pooling,
    folder: str | Path,
    int8: bool = False,
    tokenizer: SavesItself | None = None,
) -> Export:
    """Writes a model of the `transformers` library and a pooling as one graph, and checks it.

    Inputs: input_ids, attention_mask and, where the model has them, token_type_ids, each
    (batch, time). Output: sentence_embedding (batch, output_dim).

    Args:
        transformer: an AutoModel, whose output has `last_hidden_state`.
        pooling: any pooling of genpool but gated pooling, as wide as the model's states.
        folder, int8: as in `export`.
        tokenizer: saved into the folder, where given.

    Example:
        >>> transformer = AutoModel.from_pretrained("path/to/model")
        >>> export_transformer(transformer, GeneralizedPooling(384, heads=5), "out")
    """
    vocabulary = _check_parts(transformer, pooling)
    module = TransformerGraph(_plain(transformer), cast(Pooling, _plain(pooling)))
    has_types = getattr(transformer.config, "type_vocab_size", 0) or 0
    accepts = inspect.signature(transformer.forward).parameters
    names = NAMES if has_types and NAMES[2] in accepts else NAMES[:2]
    longest = min(40, getattr(transformer.config, "max_position_embeddings", None) or 40)
    trials = list(_trials(module, names, vocabulary, longest))
    sample = [torch.from_numpy(each) for each in trials[0].feeds.values()]
    with new_folder(folder) as fresh:
        path = fresh / ("float.onnx" if int8 else GRAPH)
        free = [{0: "batch", 1: "time"}] * len(names)
        write_graph(module, sample, names, free, OUTPUT, path, {})
        difference = check_graph(Graph(path), trials)
        if int8:
            round_graph(path, fresh / GRAPH)
            for each in fresh.glob("float*"):
                each.unlink()
            difference = check_graph(Graph(fresh / GRAPH), trials, rounded=True)
        write_config(
            fresh,
            KIND,
            {"int8": int8, "inputs": list(names), "output_dim": pooling.output_dim},
        )
        title = f"{type(transformer).__name__} with {type(pooling).__name__}, as ONNX"
        card = page(title, names, pooling.output_dim, int8, difference)
        (fresh / CARD).write_text(card, encoding="utf-8")
        if tokenizer is not None:
            tokenizer.save_pretrained(fresh)
    return Export(Path(folder), difference)


def _check_parts(transformer: nn.Module, pooling: Pooling) -> int:
    """Raises InputError where the two cannot be joined; gives the size of the vocabulary."""
    config = getattr(transformer, "config", None)
    vocabulary = getattr(config, "vocab_size", None)
    if not isinstance(vocabulary, int):
        raise InputError(
            f"{type(transformer).__name__} has no config.vocab_size; expected a text model of the "
            "transformers library (AutoModel.from_pretrained)."
        )
    if not isinstance(pooling, Pooling) or pooling.needs_gates:
        raise InputError(
            f"the pooling is {type(pooling).__name__}; expected one of genpool.pooling that needs "
            "no gates of an LSTM."
        )
    width = getattr(config, "hidden_size", None)
    if width is not None and width != pooling.input_dim:
        raise InputError(
            f"the states of {type(transformer).__name__} have width {width}, the pooling was made "
            f"with input_dim={pooling.input_dim}."
        )
    return vocabulary


def _plain(module: nn.Module) -> nn.Module:
    """The module itself where it is in single precision on the CPU, else a copy that is."""
    parameters = list(module.parameters())
    if all(each.device.type == "cpu" and each.dtype is torch.float32 for each in parameters):
        return module
    return deepcopy(module).cpu().float()


def _trials(
    module: TransformerGraph, names: Sequence[str], vocabulary: int, longest: int
) -> Iterator[Trial]:
    """Random tokens: several sentences, one, one token, a long batch, one without tokens."""
    chance = torch.Generator().manual_seed(0)
    for lengths in ((5, 2, 9), (7,), (1,), (longest, 3, longest, 20, 1), (4, 0)):
        width = max(lengths)
        ids = torch.randint(vocabulary, (len(lengths), width), generator=chance)
        counts = torch.tensor(lengths).clamp(max=width).unsqueeze(1)  # (batch, 1)
        mask = (torch.arange(width) < counts).long()  # (batch, time)
        inputs = [ids, mask, torch.zeros_like(ids)][: len(names)]
        with evaluation_mode(module):
            expected = module(*inputs).numpy()
        arrays = dict(zip(names, (each.numpy() for each in inputs), strict=True))
        yield Trial(f"sentences of {lengths} tokens", arrays, expected)

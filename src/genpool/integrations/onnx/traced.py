"""A sentence encoder as one module that PyTorch's exporter can trace, on padded tensors.

The exporter would turn an LSTM or a GRU into a loop over tokens: they are written to the graph as
ONNX's operators, which return zeros outside an export.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.embedding import CharacterCNN
from genpool.embedding.characters import filter_reach
from genpool.encoder import ENCODERS, Encoder, GRUEncoder, LSTMEncoder
from genpool.encoder.base import StatesAndGates
from genpool.encoder.lstm import BiLSTMStack, DirectionPair, LSTMDirection, input_gates
from genpool.errors import InputError
from genpool.model import SentenceEncoder
from genpool.pooling import GeneralizedPooling, Pooled, Pooling
from genpool.pooling.base import hide_padding, masked_softmax, weighted_sum
from genpool.saving.weights_file import SCALE, quantize_weights
from genpool.text.vocabulary import UNKNOWN


def align(mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the order (batch, time) with real tokens first, their mask, and lengths (batch,)."""
    time = mask.shape[1]
    position = torch.arange(time, device=mask.device)  # (time,)
    order = torch.where(mask, position, position + time).argsort(dim=1)
    lengths = mask.sum(dim=1, keepdim=True)  # (batch, 1)
    # Not every runtime accepts a length of 0; one token of padding is hidden by the pooling.
    return order, position < lengths, lengths.squeeze(1).clamp(min=1).to(torch.int32)


class TracedSentenceEncoder(nn.Module):
    """Word and character ids in, sentence vectors out; padding may be anywhere."""

    def __init__(self, model: SentenceEncoder, int8: bool = False) -> None:
        super().__init__()
        backing = model.embedding.backing
        self.words = RowTable(model.embedding.words.detach(), int8)
        self.ngrams = None if backing is None else RowTable(backing["table"].detach(), int8)
        self.embedding, self.projection = model.embedding, model.projection
        require_traceable(model.encoder)
        self.encoder = model.encoder
        self.pooling = traced_pooling(model.pooling)
        self.needs_gates = model.pooling.needs_gates

    @property
    def reads_characters(self) -> bool:
        """Whether the model reads characters or n-grams, and so has an input of their ids."""
        return self.embedding.spelling is not None or self.ngrams is not None

    def forward(
        self, word_ids: Tensor, mask: Tensor, character_ids: Tensor | None = None
    ) -> Tensor:
        """(batch, time), (batch, time), (batch, time, longest) -> (batch, output_dim)"""
        order, mask, lengths = align(mask)
        ordered = word_ids.gather(1, order)  # (batch, time)
        vectors = self.words(ordered)  # (batch, time, word_dim)
        if character_ids is not None:
            vectors = self._with_characters(vectors, ordered, character_ids, order)
        vectors = self.embedding.dropout.at_inference(vectors)
        states, gates = encode_padded(self.encoder, vectors, mask, lengths, self.needs_gates)
        extra = {"gates": gates} if self.needs_gates else {}
        vector: Tensor = self.pooling(states, mask, **extra).vector
        return vector if self.projection is None else cast(Tensor, self.projection(vector))

    def _with_characters(
        self, vectors: Tensor, word_ids: Tensor, character_ids: Tensor, order: Tensor
    ) -> Tensor:
        """Word vectors (batch, time, word_dim) -> (batch, time, embedding)"""
        batch, time, longest = character_ids.shape
        index = order.unsqueeze(2).expand(batch, time, longest)
        words = character_ids.gather(1, index).flatten(0, 1)  # (batch * time, longest)
        if self.ngrams is not None:
            backing = padded_ngram_vectors(words, self.ngrams)
            is_unknown = (word_ids == UNKNOWN).unsqueeze(2)  # (batch, time, 1)
            vectors = torch.where(is_unknown, backing.view(batch, time, -1), vectors)
        if self.embedding.spelling is not None:
            characters = padded_character_vectors(words, self.embedding.spelling)
            characters = characters.view(batch, time, characters.shape[1])
            vectors = torch.cat([vectors, characters], dim=2)  # (batch, time, embedding)
        return vectors


class RowTable(nn.Module):
    """A table (ids, dim) of vectors of words or n-grams; in 8 bits every row has its scale."""

    rows: Tensor
    scales: Tensor | None

    def __init__(self, rows: Tensor, int8: bool = False) -> None:
        super().__init__()
        parts = quantize_weights({"rows": rows}) if int8 else {"rows": rows}
        self.register_buffer("rows", parts["rows"])  # (ids, dim)
        self.register_buffer("scales", parts.get("rows" + SCALE))  # (ids,)

    def forward(self, ids: Tensor) -> Tensor:
        """Returns the vectors (..., dim) of ids (...)."""
        rows = functional.embedding(ids, self.rows)
        return rows if self.scales is None else rows.float() * self.scales[ids].unsqueeze(-1)


def padded_character_vectors(character_ids: Tensor, cnn: CharacterCNN) -> Tensor:
    """`character_vectors` (words, dim) of padded words (words, longest), 0 at padding."""
    mask = (character_ids > 0).unsqueeze(1)  # (words, 1, longest)
    vectors = functional.embedding(character_ids, cnn.letters).mT  # (words, dim, longest)
    vectors = vectors.masked_fill(~mask, 0)
    maxima = []
    for weights in cnn.filters:
        padded = functional.pad(vectors, filter_reach(weights.shape[2], cnn.padding))
        # ReLU returns nothing below zero, so that zeros at padding never change a maximum.
        features = functional.conv1d(padded, weights).relu().masked_fill(~mask, 0)
        maxima.append(features.amax(dim=2))  # (words, maps)
    return torch.cat(maxima, dim=1)


def padded_ngram_vectors(ngram_ids: Tensor, table: RowTable) -> Tensor:
    """`ngram_vectors` (words, dim) of padded n-grams (words, longest), 0 at padding."""
    mask = (ngram_ids > 0).unsqueeze(2)  # (words, longest, 1)
    vectors: Tensor = table(ngram_ids).masked_fill(~mask, 0)
    return vectors.sum(dim=1) / mask.sum(dim=1).clamp(min=1).sqrt()


def require_traceable(encoder: Encoder) -> None:
    """Raises InputError for an encoder that has no form for a graph."""

    def has_form(cls: type[Encoder]) -> bool:
        own = cls.padded_states is not Encoder.padded_states
        return own or issubclass(cls, BiLSTMStack | LSTMEncoder | GRUEncoder)

    if not has_form(type(encoder)):
        known = [name for name, cls in ENCODERS.items() if has_form(cls)]
        raise InputError(
            f"the encoder {type(encoder).__name__} has no form for an ONNX graph. Encoders that "
            f"have one: {', '.join(known)}."
        )


def encode_padded(
    encoder: Encoder, vectors: Tensor, mask: Tensor, lengths: Tensor, gates: bool
) -> StatesAndGates:
    """Encodes vectors (batch, time, input_dim) of sentences that all start at 0."""
    if isinstance(encoder, BiLSTMStack):
        return _bilstm(encoder, vectors, lengths, gates)
    if isinstance(encoder, LSTMEncoder):
        return _lstm(encoder, vectors, lengths, gates)
    if isinstance(encoder, GRUEncoder):
        return _gru(encoder, vectors, lengths), None
    tokens = hide_padding(vectors, mask)  # (batch, time, input_dim)

    def lstm(layer: LSTMDirection, inputs: Tensor) -> Tensor:
        return onnx_lstm(layer, inputs, lengths)

    return encoder.padded_states(tokens, mask, lstm), None


def _bilstm(encoder: BiLSTMStack, vectors: Tensor, lengths: Tensor, gates: bool) -> StatesAndGates:
    """Any stack of BiLSTM layers; the encoder itself computes the input of each layer."""
    size, rows = vectors.shape[:2], vectors.flatten(0, 1)  # (batch * time, embedding)
    below: list[DirectionPair] = []
    for layer in cast(Any, encoder.layers):
        directions = (layer.forwards, layer.backwards)
        flat = encoder.layer_rows(rows, below) if below else (rows, rows)
        inputs = [side.view(*size, side.shape[1]) for side in flat]
        halves = [onnx_lstm(*parts, lengths) for parts in zip(directions, inputs, strict=True)]
        below.append((halves[0].flatten(0, 1), halves[1].flatten(0, 1)))
    states = torch.cat(halves, dim=2)  # (batch, time, 2 hidden)
    if not gates:
        return states, None
    top = [traced_gates(*parts) for parts in zip(directions, inputs, halves, strict=True)]
    return states, torch.cat(top, dim=2)


def _lstm(encoder: LSTMEncoder, vectors: Tensor, lengths: Tensor, gates: bool) -> StatesAndGates:
    """A one-way LSTM of any depth."""
    inputs = states = vectors
    for layer in cast("list[LSTMDirection]", encoder.layers):
        inputs, states = states, onnx_lstm(layer, states, lengths)
    return states, traced_gates(layer, inputs, states) if gates else None


def _gru(encoder: GRUEncoder, vectors: Tensor, lengths: Tensor) -> Tensor:
    """A one-way GRU of any depth."""
    states = vectors
    for layer in range(encoder.gru.num_layers):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        # PyTorch's gates are reset, update and new; ONNX's update, reset and new.
        w, u, *biases = (
            _reordered(getattr(encoder.gru, f"{name}_l{layer}"), (1, 0, 2)) for name in names
        )
        weights = (w, u, torch.cat(biases))
        # PyTorch multiplies by the recurrent matrix before it applies the reset gate.
        states = _operator("GRU", states, weights, lengths, linear_before_reset=1)
    return states


def onnx_lstm(layer: LSTMDirection, inputs: Tensor, lengths: Tensor) -> Tensor:
    """Returns the states (batch, time, hidden) of one direction, zeros after each sentence."""
    # The gates are i, f, o and g; ONNX's i, o, f and g, with a bias of the recurrent product too.
    w, u, b = (_reordered(weight, (0, 2, 1, 3)) for weight in (layer.w, layer.u, layer.b))
    weights = (w, u, torch.cat([b, torch.zeros_like(b)]))
    return _operator("LSTM", inputs, weights, lengths, layer.reverse)


def _reordered(weight: Tensor, gates: Sequence[int]) -> Tensor:
    """Returns the weights of gates in another order, by slices: the optimizer folds no chunks."""
    size = weight.shape[0] // len(gates)
    return torch.cat([weight[size * gate : size * (gate + 1)] for gate in gates])


def traced_gates(layer: LSTMDirection, inputs: Tensor, states: Tensor) -> Tensor:
    """Returns the input gates (batch, time, hidden) that led to a direction's states."""
    # h_{t-1}, or h_{t+1} in reverse: after the end of a sentence the states are zeros.
    shifted = states[:, 1:] if layer.reverse else states[:, :-1]
    previous = functional.pad(shifted, (0, 0, 0, 1) if layer.reverse else (0, 0, 1, 0))
    return input_gates(inputs, previous, layer.w, layer.u, layer.b)


def _operator(
    name: str,
    inputs: Tensor,
    weights: Sequence[Tensor],
    lengths: Tensor,
    reverse: bool = False,
    **attributes: Any,
) -> Tensor:
    """One direction of one layer as an operator: (batch, time, input_dim) -> (batch, time, hidden)

    weights: input (gates, input_dim), recurrent (gates, hidden), both biases (2 gates,).
    """
    batch, time, _ = inputs.shape
    hidden = weights[1].shape[1]
    # The first dimension of ONNX's weights is the direction; each operator here has one.
    by_direction = (weight.unsqueeze(0) for weight in weights)
    (states,) = torch.onnx.ops.symbolic_multi_out(
        name,
        (inputs.transpose(0, 1), *by_direction, lengths),
        {"hidden_size": hidden, "direction": "reverse" if reverse else "forward", **attributes},
        dtypes=(inputs.dtype,),
        shapes=((time, 1, batch, hidden),),
    )
    return states.squeeze(1).transpose(0, 1)


class TracedGeneralizedPooling(nn.Module):
    """Generalized pooling, head by head: onnxruntime cannot quantize a product with all of them."""

    def __init__(self, pooling: GeneralizedPooling) -> None:
        super().__init__()
        self.pooling = pooling

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """states (batch, time, input_dim), mask (batch, time)"""
        pooling, clean = self.pooling, hide_padding(states, mask)
        logits = []
        for w1, b1, w2, b2 in zip(pooling.w1, pooling.b1, pooling.w2, pooling.b2, strict=True):
            inner = functional.linear(clean, w1, b1).relu()  # (batch, time, hidden)
            logits.append(functional.linear(inner, w2, b2))  # (batch, time, input_dim)
        weights = masked_softmax(torch.stack(logits, dim=1), mask)
        heads = weighted_sum(weights, clean)  # (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, weights)


def traced_pooling(pooling: Pooling) -> nn.Module:
    """Returns the traced form: a module (states, mask) and, where the pooling needs them, gates."""
    if isinstance(pooling, GeneralizedPooling):
        return TracedGeneralizedPooling(pooling)
    return pooling

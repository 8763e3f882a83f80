"""The same model the way people write it: the other side of the speed comparisons.

`nn.LSTM` on packed sequences, once per side of a pair; padded softmax attention with a mask; the
character CNN on every token. Nothing is wrong with it and nothing in it is slow on purpose: the
tests show the same loss and gradients as genpool's. It is the paper's model in the released
program's form, whose layers `nn.LSTM` can compute: [e ; both directions] into every layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.speed.paper_parts import bilstm_layers, character_cnn, generalized_pooling
from genpool.encoder.lstm import torch_gate_order
from genpool.model import Classifier
from genpool.text import Batch


@dataclass(frozen=True)
class Side:
    """Sentences as padded tensors: ids and lengths, and the padded characters of every token."""

    ids: Tensor  # (batch, time)
    letters: Tensor  # (batch, time, letters)
    lengths: Tensor  # (batch,)


def sides_of(batch: Batch, sides: int) -> list[Side]:
    """Returns a genpool batch as one or two padded batches, no longer than their sentences."""
    counts = batch.character_counts
    spelled = torch.zeros(len(counts), int(counts.max()), dtype=torch.long)  # (distinct, letters)
    spelled[torch.arange(spelled.shape[1]) < counts[:, None]] = batch.character_ids
    parts = []
    for index, mask in zip(batch.index.chunk(sides), batch.mask.chunk(sides), strict=True):
        lengths = mask.sum(dim=1)
        time = int(lengths.max())
        words = index[:, :time]
        letters = spelled[words].masked_fill(~mask[:, :time, None], 0)
        ids = batch.word_ids[words].masked_fill(~mask[:, :time], 0)
        longest = int((letters != 0).sum(dim=2).max())
        parts.append(Side(ids, letters[:, :, :longest], lengths))
    return parts


class TextbookModel(nn.Module):
    """Word and character vectors, stacked BiLSTM with shortcuts, generalized pooling, MLP."""

    def __init__(self, model: Classifier) -> None:
        """Copies the sizes and the weights of a genpool classifier."""
        super().__init__()
        encoder = model.encoder
        embedding, pooling = encoder.embedding, generalized_pooling(encoder)
        words, dim = embedding.words.shape
        self.words = nn.Embedding(words, dim)
        self.words.weight.requires_grad = embedding.words.requires_grad
        spelling = character_cnn(encoder)
        self.letters = nn.Embedding(*spelling.letters.shape)
        self.filters = nn.ModuleList(
            nn.Conv1d(maps.shape[1], maps.shape[0], maps.shape[2], padding="same", bias=False)
            for maps in spelling.filters
        )
        self.dropout = nn.Dropout(embedding.dropout.p)
        self.lstms = nn.ModuleList(
            nn.LSTM(
                layer.forwards.input_dim,
                layer.forwards.hidden_dim,
                bidirectional=True,
                batch_first=True,
            )
            for layer in bilstm_layers(encoder)
        )
        heads, hidden, width = pooling.w1.shape
        self.first = nn.ModuleList(nn.Linear(width, hidden) for _ in range(heads))
        self.second = nn.ModuleList(nn.Linear(hidden, width) for _ in range(heads))
        self.mlp = model.mlp.__class__(
            model.mlp.first.in_features,
            model.mlp.first.out_features,
            len(model.labels),
            model.mlp.dropout.p,
        )
        self.sides = model.sentences_per_example
        copy_weights(model, self)

    def embed(self, side: Side) -> Tensor:
        """Returns [word ; characters] of every token: (batch, time, dim)."""
        batch, time, longest = side.letters.shape
        letters = side.letters.view(batch * time, longest)  # (tokens, letters)
        real = (letters != 0).unsqueeze(1)  # (tokens, 1, letters)
        vectors = self.letters(letters).mT * real  # (tokens, dim, letters)
        spelled = [
            (functional.relu(conv(vectors)) * real).amax(dim=2) for conv in self.filters
        ]  # each (tokens, maps)
        characters = torch.cat(spelled, dim=1).view(batch, time, -1)
        return self.dropout(torch.cat([self.words(side.ids), characters], dim=2))

    def encode(self, side: Side) -> Tensor:
        """Returns one vector per sentence: (batch, heads * dim)."""
        embedded = self.embed(side)
        layer_input = states = embedded
        for lstm in self.lstms:
            packed = pack_padded_sequence(
                layer_input, side.lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            states, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
            layer_input = torch.cat([embedded, states], dim=2)
        mask = torch.arange(states.shape[1], device=states.device) < side.lengths[:, None]
        pooled = []
        for first, second in zip(self.first, self.second, strict=True):
            logits = second(first(states).relu())  # (batch, time, width)
            logits = logits.masked_fill(~mask[:, :, None], float("-inf"))
            pooled.append((logits.softmax(dim=1) * states).sum(dim=1))  # (batch, width)
        return torch.cat(pooled, dim=1)

    def forward(self, sides: list[Side]) -> Tensor:
        vectors = [self.encode(side) for side in sides]
        if len(vectors) == 1:
            return self.mlp(vectors[0])
        a, b = vectors
        return self.mlp(torch.cat([a, b, (a - b).abs(), a * b], dim=1))


def copy_weights(source: Classifier, target: TextbookModel) -> None:
    """Copies genpool's weights into the textbook model; the LSTM's gates have another order."""
    encoder = source.encoder
    spelling, pooling = character_cnn(encoder), generalized_pooling(encoder)
    convolutions = cast(Iterable[nn.Conv1d], target.filters)
    first_layers = cast(Iterable[nn.Linear], target.first)
    second_layers = cast(Iterable[nn.Linear], target.second)
    with torch.no_grad():
        target.words.weight.copy_(encoder.embedding.words)
        target.letters.weight.copy_(spelling.letters)
        for conv, maps in zip(convolutions, spelling.filters, strict=True):
            conv.weight.copy_(maps)
        for lstm, layer in zip(target.lstms, bilstm_layers(encoder), strict=True):
            for suffix, direction in (("", layer.forwards), ("_reverse", layer.backwards)):
                for name, weights in (
                    ("weight_ih", direction.w),
                    ("weight_hh", direction.u),
                    ("bias_ih", direction.b),
                ):
                    getattr(lstm, f"{name}_l0{suffix}").copy_(torch_gate_order(weights))
                getattr(lstm, f"bias_hh_l0{suffix}").zero_()
        for head, (first, second) in enumerate(zip(first_layers, second_layers, strict=True)):
            first.weight.copy_(pooling.w1[head])
            first.bias.copy_(pooling.b1[head])
            second.weight.copy_(pooling.w2[head])
            second.bias.copy_(pooling.b2[head])
        target.mlp.load_state_dict(source.mlp.state_dict())

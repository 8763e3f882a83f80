"""DiSAN, CAFE and ReSAN in the form that an ONNX graph can contain: padded tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from genpool.integrations.onnx.traced_recurrent import (
    Aligned,
    StatesAndGates,
    TracedLSTMDirection,
)
from genpool.pooling.masking import hide_padding, masked_mean
from genpool.reproduction.encoders.cafe import CAFEEncoder, intra_attention
from genpool.reproduction.encoders.disan import DiSANEncoder
from genpool.reproduction.encoders.resan import ReSANEncoder, mean_of_others


class TracedDiSAN(nn.Module):
    """Directional self-attention in one block: a graph cannot choose blocks by their size."""

    def __init__(self, encoder: DiSANEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        tokens = hide_padding(vectors, aligned.mask)  # (batch, time, input_dim)
        return self.encoder.attend_both_ways(tokens, aligned.mask, blockwise=False), None


class TracedCAFE(nn.Module):
    """Highway layers, intra-attention and its features, and the LSTM as an operator."""

    def __init__(self, encoder: CAFEEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.lstm = TracedLSTMDirection(encoder.lstm)

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        tokens = hide_padding(vectors, aligned.mask)  # (batch, time, input_dim)
        values, keys = self.encoder.transformed(tokens)  # 2 x (batch, time, hidden)
        partners = intra_attention(values, keys, aligned.mask)  # (batch, time, hidden)
        return self.lstm(self.encoder.with_features(values, partners), aligned), None


class TracedReSAN(nn.Module):
    """Reinforced self-attention: words that were not chosen are masked instead of left out."""

    def __init__(self, encoder: ReSANEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, vectors: Tensor, aligned: Aligned, gates: bool) -> StatesAndGates:
        mask = aligned.mask
        tokens = hide_padding(vectors, mask)  # (batch, time, input_dim)
        mean = masked_mean(tokens, mask).unsqueeze(1).expand_as(tokens)
        chosen = self.encoder.log_odds(tokens, mean) >= 0  # (batch, time, 2)
        count = mask.sum(dim=1, keepdim=True)  # (batch, 1)
        halves = []
        for part in (self.encoder.forwards, self.encoder.backwards):
            hidden = hide_padding(part.hidden(tokens), mask)  # (batch, time, hidden)
            seen = part.context(hidden, mask & chosen[:, :, 1], blockwise=False)
            others = mean_of_others(hidden, masked_mean(hidden, mask).unsqueeze(1), count)
            halves.append(part.fuse(hidden, torch.where(chosen[:, :, :1], seen, others)))
        return torch.cat(halves, dim=2), None  # (batch, time, 2 hidden)

"""States and mask from the features that the modules of sentence-transformers pass on.

Its modules pass on one dictionary. Names that are used here:

    token_embeddings    (batch, time, dim), or (1, tokens, dim) where sentences are concatenated
    attention_mask      (batch, time), 1 at real tokens
    cu_seq_lens_q       (batch + 1,)   where each sentence starts, if they are concatenated
    prompt_length       tokens of the prompt at the start of every sentence
    sentence_embedding  (batch, width)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from genpool.errors import InputError

Features = dict[str, Any]

#: features that genpool's modules add: (batch, heads, dim), and (batch, heads, time, dim)
HEADS, WEIGHTS = "head_vectors", "head_weights"


def states_and_mask(features: Features, include_prompt: bool) -> tuple[Tensor, Tensor]:
    """Returns states (batch, time, dim) and mask (batch, time), True at the tokens to be pooled.

    The mask is a new tensor: losses that embed the same features twice need theirs unchanged.
    """
    states = features.get("token_embeddings")
    if not isinstance(states, Tensor):
        raise InputError(
            f"the features have {', '.join(sorted(features)) or 'nothing'}; expected "
            "token_embeddings: put this module after a Transformer."
        )
    if "cu_seq_lens_q" in features:
        states, mask = _separated(states, features["cu_seq_lens_q"])
    else:
        mask = _boolean_mask(states, features.get("attention_mask"))
    if not include_prompt and "prompt_length" in features:
        # The prompt is the first real tokens, whichever side the padding is on.
        mask = mask & (mask.cumsum(dim=1) > _as_int(features["prompt_length"]))
    return states, mask


def _boolean_mask(states: Tensor, attention_mask: Tensor | None) -> Tensor:
    """The attention mask as booleans; all True where it is of other tokens than the states."""
    if attention_mask is None or attention_mask.shape[-1] != states.shape[1]:
        return torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    return attention_mask.bool()  # (batch, time)


def _separated(states: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """Puts concatenated sentences (1, tokens, dim) into one row each, with a mask."""
    lengths = starts.diff().to(states.device)  # (batch,)
    longest = int(lengths.max()) if len(lengths) else 0
    mask = torch.arange(longest, device=states.device) < lengths.unsqueeze(1)  # (batch, longest)
    padded = states.new_zeros(*mask.shape, states.shape[-1])  # (batch, longest, dim)
    return padded.masked_scatter(mask.unsqueeze(-1), states[0, : int(lengths.sum())]), mask


def _as_int(prompt_length: Any) -> int:
    """An integer when encoding; in training a tensor that contains it once or several times."""
    if isinstance(prompt_length, Tensor):
        return int(prompt_length.flatten()[0])
    return int(prompt_length)

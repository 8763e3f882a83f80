"""Word vectors from characters: convolutions of several widths, ReLU, maximum (Sec. 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.tensors.modules import (
    Initialization,
    gaussian_,
    require_literal,
    require_positive,
)

#: characters of words whose vectors are computed together at inference
CHARACTERS_TOGETHER = 2**16
#: "both": zeros on both sides of a word, so that a filter is centred on a character;
#: "right": zeros on the right only, so that a filter starts at a character (released program)
CharacterPadding = Literal["both", "right"]


def filter_reach(width: int, padding: CharacterPadding = "both") -> tuple[int, int]:
    """Returns how many characters a filter covers to the left and to the right of its position."""
    left = (width - 1) // 2 if padding == "both" else 0
    return left, width - 1 - left


def character_vectors(
    characters: Tensor,
    character_counts: Tensor,
    filters: Sequence[Tensor],
    padding: CharacterPadding = "both",
) -> Tensor:
    """Returns max_t ReLU(filter * characters_t) of every word, (words, all maps); zeros of none.

    characters (characters, dim), one word after the other; character_counts (words,); filters
    (maps, dim, width). Words have their own padding: a vector depends on its characters only.
    """
    words, maps = len(character_counts), sum(len(weights) for weights in filters)
    word_indices = torch.arange(words, device=characters.device)  # (words,)
    word_of_character = word_indices.repeat_interleave(character_counts)  # (characters,)
    if not len(word_of_character):
        return characters.new_zeros(words, maps)
    # All words in one row, with a gap between neighbours as wide as the widest filter reaches.
    reaches = [filter_reach(weights.shape[2], padding) for weights in filters]
    gap = max(max(reach) for reach in reaches)
    position = torch.arange(len(characters), device=characters.device)  # (characters,)
    position = position + gap * (word_of_character + 1)
    length = len(characters) + gap * (words + 1)
    row = characters.new_zeros(length, characters.shape[1])  # (length, dim)
    row = row.index_copy(0, position, characters)
    features = []
    for weights, reach in zip(filters, reaches, strict=True):
        padded = functional.pad(row.T, reach)  # (dim, length + width - 1)
        convolved = functional.conv1d(padded.unsqueeze(0), weights).squeeze(0)  # (maps, length)
        features.append(convolved.T.index_select(0, position).relu())  # (characters, maps)
    joined = torch.cat(features, dim=1)  # (characters, all maps)
    # ReLU returns nothing below zero, so the maximum may start from zero.
    start = joined.new_zeros(words, maps)
    index = word_of_character.unsqueeze(1).expand_as(joined)
    return start.scatter_reduce(0, index, joined, reduce="amax")  # (words, all maps)


class CharacterCNN(nn.Module):
    """The paper's character composition: 15-d characters, widths 1, 3 and 5, 100 maps each.

    Args:
        characters: number of character ids (`len(Characters)`); id 0 is no character.
        dim: dimension of a character's vector. Default: 15.
        widths: filter widths. Default: (1, 3, 5).
        maps: feature maps of each width. Default: 100.
        initialization: of the filters; "torch" is uniform by their size, "gaussian" has standard
            deviation 0.01 as in the released program. Default: "torch".
        padding: "both" centres a filter on a character, "right" starts it there as in the released
            program. Default: "both".

    Raises:
        InputError: a size is below 1, or a name is unknown.
    """

    def __init__(
        self,
        characters: int,
        dim: int = 15,
        widths: Sequence[int] = (1, 3, 5),
        maps: int = 100,
        initialization: Initialization = "torch",
        padding: CharacterPadding = "both",
    ) -> None:
        super().__init__()
        require_positive(characters=characters, dim=dim, maps=maps, number_of_widths=len(widths))
        require_positive(widths=min(widths))
        require_literal("initialization", initialization, Initialization)
        require_literal("character padding", padding, CharacterPadding)
        self.initialization, self.padding = initialization, padding
        self.output_dim = maps * len(widths)
        # The names `letters` and `filters` are those of the tensors in saved folders.
        self.letters = nn.Parameter(torch.empty(characters, dim))
        self.filters = nn.ParameterList(torch.empty(maps, dim, width) for width in widths)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initializes the character vectors (Gaussian 0.01) and the filters."""
        gaussian_([self.letters, *(self.filters if self.initialization == "gaussian" else ())])
        if self.initialization == "torch":
            for weights in self.filters:
                nn.init.kaiming_uniform_(weights, a=5**0.5)  # as in nn.Conv1d

    def forward(self, character_ids: Tensor, character_counts: Tensor) -> Tensor:
        """Returns the vectors (words, output_dim) of words, from ids and counts as in `Batch`."""
        if len(character_ids) <= CHARACTERS_TOGETHER or torch.is_grad_enabled():
            return self._together(character_ids, character_counts)
        # In parts, for bounded memory: the features of a character take a hundred times its space.
        part = character_counts.cumsum(0) // CHARACTERS_TOGETHER  # (words,)
        _, words = torch.unique_consecutive(part, return_counts=True)  # (parts,)
        counts = torch.split(character_counts, words.tolist())
        ids = torch.split(character_ids, [int(lengths.sum()) for lengths in counts])
        return torch.cat([self._together(*inputs) for inputs in zip(ids, counts, strict=True)])

    def _together(self, character_ids: Tensor, character_counts: Tensor) -> Tensor:
        vectors = functional.embedding(character_ids, self.letters)  # (characters, dim)
        return character_vectors(vectors, character_counts, list(self.filters), self.padding)

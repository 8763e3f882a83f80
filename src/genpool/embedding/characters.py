"""Word vectors from letters: convolutions of several widths, ReLU, maximum (Sec. 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.errors import InputError


def character_vectors(
    letters: Tensor, character_counts: Tensor, filters: Sequence[Tensor]
) -> Tensor:
    """max_t ReLU(filter * letters_t) of every word, all filters side by side.

    letters (letters, dim): letter vectors of all words, one word after the other; character_counts
    (words,); filters, each (maps, dim, width). Every word is padded with zeros of its own, half a
    filter on either side, so that its vector depends on nothing but its letters. A word without
    letters gives zeros.
    """
    words, maps = len(character_counts), sum(len(each) for each in filters)
    word_of_letter = torch.arange(words, device=letters.device).repeat_interleave(character_counts)
    if not len(word_of_letter):
        return letters.new_zeros(words, maps)
    # All words in one row, with a gap between neighbours as wide as the widest filter reaches.
    gap = max(each.shape[2] for each in filters) // 2
    place = torch.arange(len(letters), device=letters.device) + gap * (word_of_letter + 1)
    length = len(letters) + gap * (words + 1)
    row = letters.new_zeros(length, letters.shape[1]).index_copy(0, place, letters)
    found = []
    for each in filters:
        width = each.shape[2]
        padded = functional.pad(row.T, ((width - 1) // 2, width // 2))  # (dim, length + width - 1)
        convolved = functional.conv1d(padded.unsqueeze(0), each).squeeze(0)  # (maps, length)
        found.append(convolved.T.index_select(0, place).relu())  # (letters, maps)
    features = torch.cat(found, dim=1)  # (letters, all maps)
    # ReLU gives nothing below zero, so that zero may start the maximum.
    start = features.new_zeros(words, maps)
    where = word_of_letter.unsqueeze(1).expand_as(features)
    return start.scatter_reduce(0, where, features, reduce="amax")  # (words, all maps)


class CharacterCNN(nn.Module):
    """The paper's character composition: 15-d letters, widths 1, 3 and 5, 100 maps each.

    Args:
        characters: number of character entries (`len(Characters)`); entry 0 is no letter.
        dim: width of a letter's vector.
        widths: filter widths.
        maps: feature maps of each width.
    """

    def __init__(
        self, characters: int, dim: int = 15, widths: Sequence[int] = (1, 3, 5), maps: int = 100
    ) -> None:
        super().__init__()
        if min(characters, dim, maps, *widths, len(widths)) < 1:
            raise InputError(
                f"characters={characters}, dim={dim}, widths={tuple(widths)}, maps={maps}; "
                "all must be 1 or more."
            )
        self.output_dim = maps * len(widths)
        self.letters = nn.Parameter(torch.empty(characters, dim))
        self.filters = nn.ParameterList(torch.empty(maps, dim, width) for width in widths)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Letters Gaussian 0.01 as in the released program; filters uniform by their size."""
        nn.init.normal_(self.letters, std=0.01)
        for each in self.filters:
            nn.init.kaiming_uniform_(each, a=5**0.5)

    def forward(self, letters: Tensor, character_counts: Tensor) -> Tensor:
        """letters (letters,), character_counts (words,), as in `Batch` -> (words, output_dim)."""
        vectors = functional.embedding(letters, self.letters)  # (letters, dim)
        return character_vectors(vectors, character_counts, list(self.filters))

"""The quick form of a sentence encoder: what depends on a word alone is computed once.

A word's vector, and its products with the weights of BiLSTM layers (W e + b), are the same in every
sentence. The quick form keeps them in a table that is filled as words appear and bounded in size.
A BiLSTM stack goes through `ProjectedStack`, which reads the products from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, chain
from threading import Lock
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from genpool.encoder.base import StatesAndGates
from genpool.encoder.lstm import (
    BiLSTMLayer,
    BiLSTMStack,
    DirectionPair,
    adder,
    run_steps,
)
from genpool.errors import InputError
from genpool.inference.int8 import Int8Product, int8_pooling
from genpool.inference.sentence_vectors import SentenceVectors, evaluation_mode
from genpool.tensors.arrays import pad_annotations
from genpool.tensors.modules import run_both
from genpool.tensors.packing import Packing
from genpool.text import WordTable

if TYPE_CHECKING:
    from genpool.model import SentenceEncoder

Places = NDArray[np.int32]
Weights = tuple[tuple[int, int, torch.dtype, float], ...]

#: words in the table before it is emptied
CAPACITY_WORDS = 50_000
#: a table grows by copying up to this share of its capacity
COPIED_SHARE = 8
#: a larger word table is freed after use: 65,000 words of the embedded encoder are kept
MAX_KEPT_TABLE_BYTES = 512 << 20
#: of larger tensors, an evenly spaced sample is summed
MAX_SUMMED_VALUES = 1 << 24


class QuickEncoder(SentenceVectors):
    """A sentence encoder that is used, not trained: the same vectors in less time.

    It reads the model's weights when it is made; make it again after training. Every encoder and
    pooling works; the BiLSTMs gain most, because their products with the word vectors are in the
    table too. It can be used by several threads at once.

    Args:
        model: the sentence encoder; it is not copied.
        capacity: words in the table; a full table is emptied and filled again. Default: 50,000.
        int8: round the weights of BiLSTM layers, generalized pooling and projection to 8 bits.
            Faster on CPUs with 8-bit products; the vectors differ a little. Default: False.

    Raises:
        InputError: capacity is below 1, or int8 is not possible for this model.

    Example:
        >>> quick = QuickEncoder(SentenceEncoder.from_pretrained("my-model"))
        >>> vectors = quick.encode(sentences)   # (sentences, output_dim)
    """

    def __init__(
        self, model: SentenceEncoder, capacity: int = CAPACITY_WORDS, int8: bool = False
    ) -> None:
        if capacity < 1:
            raise InputError(f"capacity is {capacity}; expected 1 word or more.")
        self.model, self.capacity, self.text = model, capacity, model.text
        self.output_dim, self.device, self.dtype = model.output_dim, model.device, model.dtype
        self._stack: ProjectedStack | None = None
        # Gated pooling needs the inputs of the top layer, so there the vectors are kept instead.
        if isinstance(model.encoder, BiLSTMStack) and not model.pooling.needs_gates:
            self._stack = ProjectedStack(model.encoder, int8)
        if int8 and (self._stack is None or self.device.type != "cpu"):
            raise InputError(
                "int8 is for BiLSTM encoders (with any pooling but gated) on a CPU; this model has "
                f"the encoder {model.settings.encoder.name!r}, {model.settings.pooling.name} "
                f"pooling, on {model.device}. Leave int8 out."
            )
        self._pooling = int8_pooling(model.pooling) if int8 else model.pooling
        self._projection: Callable[[Tensor], Tensor] | None = model.projection
        if int8 and model.projection is not None:
            self._projection = Int8Product(model.projection.weight)
        self._lock = Lock()
        self._empty_table()

    @property
    def threads(self) -> int:  # type: ignore[override]
        """Batches that can be encoded at once: PyTorch's threads, where all is in the table."""
        return torch.get_num_threads() if self._stack and self.device.type == "cpu" else 1

    @property
    def table_bytes(self) -> int:
        """The memory that the table of words takes now."""
        return self._filled * self._table.shape[1] * self._table.element_size()

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim) of tokenized sentences, as one batch."""
        with self._lock, evaluation_mode():
            if len(self._words) > self.capacity:
                self._empty_table()
            rows = [self._words.row(words, self.text.sentence_ends) for words in sentences]
            self._add_new_words()
            table = self._table
        lengths = torch.tensor([len(row) for row in rows])  # (batch,)
        mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)  # (batch, time)
        places = torch.zeros(mask.shape, dtype=torch.long)
        places[mask] = torch.from_numpy(np.concatenate(rows)).long()
        annotations = self.text.annotations(sentences)
        padded = None
        if annotations is not None:
            padded = torch.from_numpy(pad_annotations(annotations, mask.shape[1])).to(self.device)
        packing = Packing.from_mask(mask.to(self.device), padded)
        index = places.to(self.device).flatten().index_select(0, packing.index)  # (rows,)
        with evaluation_mode():
            states, gates = self._states(table, index, packing)
            vectors = self._pooling.pool_rows(states, packing, gates).vector
            return vectors if self._projection is None else self._projection(vectors)

    def _states(self, table: Tensor, index: Tensor, packing: Packing) -> StatesAndGates:
        if self._stack is not None:
            return self._stack(table, index, packing), None
        vectors = table.index_select(0, index)  # (rows, embedding)
        return self.model.encoder.encode_rows(vectors, packing, self.model.pooling.needs_gates)

    def _empty_table(self) -> None:
        self._words: WordTable = self.text.table()
        self._table = torch.empty(0, 0, device=self.device)  # (room for words, width)
        self._filled = 0

    def _add_new_words(self) -> None:
        first, end = self._filled, len(self._words)
        if first == end:
            return
        batch = self._words.batch([np.arange(first, end, dtype=np.int32)]).to(self.device)
        rows = self.model.embedding.distinct_at_inference(batch)  # (new words, embedding)
        if self._stack is not None:
            rows = self._stack.project(rows)  # (new words, all gates)
        if end > len(self._table):
            # Twice the room: growing by a few words at a time would copy the table each time. A
            # large one is not copied, because for a moment there would be two of them: it has room
            # for all, and for the batch that fills it. Unused room takes no memory.
            large = end > self.capacity // COPIED_SHARE
            room = max(end, self.capacity * 5 // 4 if large else 2 * len(self._table))
            table = rows.new_empty(room, rows.shape[1])
            if first:
                table[:first] = self._table[:first]
            self._table = table
        self._table[first:end] = rows
        self._filled = end


class ProjectedStack:
    """The layers of a BiLSTM stack, with W e + b of all of them as one product per word."""

    def __init__(self, encoder: BiLSTMStack, int8: bool = False) -> None:
        self.encoder = encoder
        self.layers = cast("list[BiLSTMLayer]", list(encoder.layers))
        directions = [way for layer in self.layers for way in (layer.forwards, layer.backwards)]
        #: where the gates of every direction start in a row of the table, and where the last end
        self.columns = [0, *accumulate(4 * way.hidden_dim for way in directions)]
        split = []  # the columns for the word vectors, and those for the layers below
        for number, way in enumerate(directions):
            columns = encoder.input_dim if number < 2 or encoder.has_shortcuts else 0
            split.append(way.w.detach().tensor_split([columns], dim=1))
        # A layer that does not see the words has no columns for them, only a bias.
        self.from_words = torch.cat(
            [functional.pad(words, (0, encoder.input_dim - words.shape[1])) for words, _ in split]
        )  # (all gates, embedding)
        self.biases = torch.cat([way.b.detach() for way in directions])  # (all gates,)
        #: add the product with the layers below (the first layer has none), and with h_{t-1}
        add_below = (lambda weight: Int8Product(weight).add_rows_to) if int8 else adder
        self.add_below = [add_below(below) if below.shape[1] else None for _, below in split]
        self.add_recurrent = [
            Int8Product(way.u).add_to if int8 else adder(way.u.detach()) for way in directions
        ]

    def project(self, vectors: Tensor) -> Tensor:
        """Word vectors (words, embedding) -> (words, all gates)"""
        return torch.addmm(self.biases, vectors, self.from_words.T)

    def __call__(self, table: Tensor, index: Tensor, packing: Packing) -> Tensor:
        """Returns the top states (rows, 2 hidden) of the words at `index` (rows,) of the table."""
        no_words = table.new_empty(len(index), 0)
        below: list[DirectionPair] = []
        states = no_words
        for number, layer in enumerate(self.layers):
            inputs = self.encoder.layer_rows(no_words, below) if below else (no_words, no_words)
            states = table.new_empty(len(index), 2 * layer.forwards.hidden_dim)
            forwards, backwards = states.chunk(2, dim=1)
            below.append((forwards, backwards))
            arguments = (number, table, index, packing, inputs, below[-1])
            run_both(partial(self._direction, *arguments), table.device)
        return states

    def _direction(
        self,
        number: int,
        table: Tensor,
        index: Tensor,
        packing: Packing,
        inputs: DirectionPair,
        states: DirectionPair,
        side: int,
    ) -> None:
        """Writes the states (rows, hidden) of one side of a layer."""
        way = 2 * number + side
        from_words = table[:, self.columns[way] : self.columns[way + 1]]
        gates = from_words.index_select(0, index)  # (rows, 4 hidden)
        add_below = self.add_below[way]
        if add_below is not None:
            add_below(gates, inputs[side])
        run_steps(gates, packing.sizes, self.add_recurrent[way], bool(side), states[side])


class QuickEncoderCache:
    """The quick form of one model; copies and pickles of the model start with an empty cache."""

    def __init__(self) -> None:
        self._kept: tuple[Weights, QuickEncoder] | None = None

    @contextmanager
    def form_of(self, model: SentenceEncoder) -> Iterator[QuickEncoder]:
        """Yields the quick form that is kept, or a new one if the model has changed since."""
        weights, kept = weights_state(model), self._kept
        if kept is None or kept[0] != weights or kept[1].text is not model.text:
            kept = self._kept = weights, QuickEncoder(model)
        try:
            yield kept[1]
        finally:
            if kept[1].table_bytes > MAX_KEPT_TABLE_BYTES:
                self._kept = None

    def __reduce__(self) -> tuple[Callable[[], QuickEncoderCache], tuple[()]]:
        return type(self), ()


def weights_state(model: SentenceEncoder) -> Weights:
    """Returns what changes when a weight of the model changes.

    A new tensor has another address, and PyTorch counts changes in place; neither shows a change
    through `parameter.data`, which the sum does.
    """
    states = []
    for tensor in chain(model.parameters(), model.buffers()):
        values = tensor.detach().flatten()
        sample = values[:: 1 + len(values) // MAX_SUMMED_VALUES]
        total = float(sample.sum(dtype=torch.promote_types(tensor.dtype, torch.float32)))
        # Tensors made in inference mode have no counter; their sum must do.
        version = 0 if tensor.is_inference() else tensor._version
        states.append((tensor.data_ptr(), version, tensor.dtype, total))
    return tuple(states)

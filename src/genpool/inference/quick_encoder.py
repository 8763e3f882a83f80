"""The quick form of a sentence encoder: what depends on a word alone is computed once.

A word's vector, and its products with the weights of BiLSTM layers (W e + b), are the same in every
sentence. The quick form keeps them in a table that is filled as words appear and bounded in size:
known words, and unknown ones, which are computed from their characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.config import ModelSettings
from genpool.embedding import TokenEmbedding
from genpool.encoder import Encoder
from genpool.errors import InputError
from genpool.inference.batching import evaluation_mode
from genpool.inference.int8 import Int8Product
from genpool.inference.int8_pooling import int8_pooling
from genpool.inference.quick_bilstm import ProjectedStack
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.pooling import Pooled, Pooling
from genpool.tensors.annotations import pad_annotations
from genpool.tensors.packing import Packing
from genpool.text import TextPipeline, WordTable

Places = NDArray[np.int32]

#: words in the table before it is emptied
CAPACITY_WORDS = 50_000
#: a table grows by copying up to this share of its capacity
COPIED_SHARE = 8


class EncoderParts(Protocol):
    """The parts of a `SentenceEncoder`, which itself uses the quick form."""

    text: TextPipeline
    settings: ModelSettings
    embedding: TokenEmbedding
    encoder: Encoder
    pooling: Pooling
    projection: nn.Linear | None

    @property
    def output_dim(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def dtype(self) -> torch.dtype: ...
    def project(self, pooled: Pooled) -> Pooled: ...


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
        self, model: EncoderParts, capacity: int = CAPACITY_WORDS, int8: bool = False
    ) -> None:
        if capacity < 1:
            raise InputError(f"capacity is {capacity}; expected 1 word or more.")
        self.model, self.capacity, self.int8 = model, capacity, int8
        self.text = model.text
        # Gated pooling needs the inputs of the top layer, so there the vectors are kept instead.
        gated = model.pooling.needs_gates
        self._stack = None if gated else ProjectedStack.of(model.encoder, int8)
        if int8 and (self._stack is None or model.device.type != "cpu"):
            raise InputError(
                "int8 is for BiLSTM encoders (with any pooling but gated) on a CPU; this model has "
                f"the encoder {model.settings.encoder.name!r}, {model.settings.pooling.name} "
                f"pooling, on {model.device}. Leave int8 out."
            )
        self._pooling = int8_pooling(model.pooling) if int8 else model.pooling
        projection = model.projection
        self._projection = (
            Int8Product(projection.weight) if int8 and projection is not None else None
        )
        self._lock = Lock()
        self._empty_table()

    @property
    def output_dim(self) -> int:
        """The dimension of a sentence vector."""
        return self.model.output_dim

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the model's weights."""
        return self.model.dtype

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
            table, rows = self._look_up(sentences)
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
        if self._stack is not None:
            with torch.no_grad():
                states = self._stack(table, index, packing)
                return self._projected(self._pooling.pool_rows(states, packing))
        with evaluation_mode():
            needs_gates = self.model.pooling.needs_gates
            vectors = table.index_select(0, index)  # (rows, embedding)
            states, gates = self.model.encoder.encode_rows(vectors, packing, needs_gates)
            return self._projected(self._pooling.pool_rows(states, packing, gates))

    def _look_up(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, list[Places]]:
        """Returns the table, with all words of the sentences in it, and their places."""
        if len(self._words) > self.capacity:
            self._empty_table()
        rows = [self._words.row(words, self.text.sentence_ends) for words in sentences]
        self._fill()
        return self._table, rows

    def _projected(self, pooled: Pooled) -> Tensor:
        if self._projection is not None:
            return self._projection(pooled.vector)
        return self.model.project(pooled).vector

    def _empty_table(self) -> None:
        self._words: WordTable = self.text.table()
        self._table = torch.empty(0, 0, device=self.device)  # (room for words, width)
        self._filled = 0

    def _fill(self) -> None:
        """Computes the rows of words that are new to the table."""
        first, end = self._filled, len(self._words)
        if first == end:
            return
        batch = self._words.batch([np.arange(first, end, dtype=np.int32)]).to(self.device)
        rows = self.model.embedding.distinct_at_inference(batch)  # (new words, embedding)
        if self._stack is not None:
            rows = self._stack.project(rows)  # (new words, all gates)
        if end > len(self._table):
            # Twice the room: a table that grew by a few words at a time would be copied each time.
            # A large one is not copied again, because for a moment there would be two of them; the
            # words of the batch that fills it have room too. Unused room takes no memory.
            large = end > self.capacity // COPIED_SHARE
            room = max(end, self.capacity * 5 // 4 if large else 2 * len(self._table))
            table = rows.new_empty(room, rows.shape[1])
            if first:
                table[:first] = self._table[:first]
            self._table = table
        self._table[first:end] = rows
        self._filled = end

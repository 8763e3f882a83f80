"""The inference form of a sentence encoder: what depends on a word alone is computed once.

A word's vector, and what the layers of a BiLSTM make of it (W e + b), are the same in every
sentence. The inference form keeps them in a table that is filled as words appear and bounded in
size: known words, and unknown ones, which are computed from their letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.config import ModelSettings
from genpool.embedding import TokenEmbedding
from genpool.encoder import Encoder
from genpool.encoder.bilstm import BiLSTMStack
from genpool.errors import InputError
from genpool.inference.batching import evaluation_mode
from genpool.inference.int8 import Int8Product
from genpool.inference.int8_pooling import Int8GeneralizedPooling
from genpool.inference.quick_bilstm import ProjectedStack
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.pooling import GeneralizedPooling, Pooled, Pooling
from genpool.tensors.packing import Packing
from genpool.text import TextPipeline, WordTable

Places = NDArray[np.int32]


class EncoderParts(Protocol):
    """What is needed of a `SentenceEncoder`, which itself uses this form."""

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

    It reads the model's weights when it is made. Every encoder and pooling works; the BiLSTMs gain
    most, because their products with the word vectors are in the table too.

    Args:
        capacity: words in the table at the most; a full table is emptied and filled anew.
        int8: round the weights of BiLSTM layers, generalized pooling and projection to 8 bits.
            Faster on CPUs that multiply such numbers; the vectors differ a little.

    Example:
        >>> quick = QuickEncoder(SentenceEncoder.from_pretrained("my-model"))
        >>> vectors = quick.encode(sentences)
    """

    def __init__(self, model: EncoderParts, capacity: int = 50_000, int8: bool = False) -> None:
        if capacity < 1:
            raise InputError(f"capacity is {capacity}; expected 1 word or more.")
        self.model, self.capacity, self.int8 = model, capacity, int8
        self.text = model.text
        # Gated pooling needs the inputs of the top layer, so there the vectors are kept instead.
        stacked = isinstance(model.encoder, BiLSTMStack) and not model.pooling.needs_gates
        if int8 and (not stacked or model.device.type != "cpu"):
            raise InputError(
                "int8 is for BiLSTM encoders (with any pooling but gated) on a CPU; this model has "
                f"the encoder {model.settings.encoder.name!r}, {model.settings.pooling.name} "
                f"pooling, on {model.device}. Leave int8 out."
            )
        self._stack = ProjectedStack(cast(BiLSTMStack, model.encoder), int8) if stacked else None
        rounds_pooling = int8 and isinstance(model.pooling, GeneralizedPooling)
        self._pooling = (
            Int8GeneralizedPooling(cast(GeneralizedPooling, model.pooling))
            if rounds_pooling
            else model.pooling
        )
        project = model.projection
        self._project = Int8Product(project.weight) if int8 and project is not None else None
        self._lock = Lock()
        self._forget()

    @property
    def output_dim(self) -> int:
        return self.model.output_dim

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    @property
    def threads(self) -> int:  # type: ignore[override]
        """Where the model itself is not used, any number of threads may use its numbers."""
        return torch.get_num_threads() if self._stack and self.device.type == "cpu" else 1

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        with self._lock, evaluation_mode(cast(nn.Module, self.model)):
            table, rows = self._look_up(sentences)
        lengths = torch.tensor([len(row) for row in rows])  # (batch,)
        mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)  # (batch, time)
        places = torch.zeros(mask.shape, dtype=torch.long)
        places[mask] = torch.from_numpy(np.concatenate(rows)).long()
        packing = Packing.from_mask(mask.to(self.device))
        index = places.to(self.device).flatten().index_select(0, packing.index)  # (rows,)
        if self._stack is not None:
            with torch.no_grad():
                states = self._stack(table, index, packing)
                return self._projected(self._pooling.pool_rows(states, packing))
        with evaluation_mode(cast(nn.Module, self.model)):
            needs_gates = self.model.pooling.needs_gates
            known = table.index_select(0, index)  # (rows, embedding)
            states, gates = self.model.encoder.encode_rows(known, packing, needs_gates)
            return self._projected(self._pooling.pool_rows(states, packing, gates))

    def _look_up(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, list[Places]]:
        """The table, with all words of the sentences in it, and where they are."""
        if len(self._words) > self.capacity:
            self._forget()
        rows = [self._words.row(words, self.text.sentence_ends) for words in sentences]
        self._fill()
        return self._table, rows

    def _projected(self, pooled: Pooled) -> Tensor:
        if self._project is not None:
            return self._project(pooled.vector)
        return self.model.project(pooled).vector

    def _forget(self) -> None:
        self._words: WordTable = self.text.table()
        self._table = torch.empty(0, 0, device=self.device)

    def _fill(self) -> None:
        """Computes the rows of words that are new to the table."""
        begin, end = len(self._table), len(self._words)
        if begin == end:
            return
        batch = self._words.batch([np.arange(begin, end, dtype=np.int32)]).to(self.device)
        fresh = self.model.embedding.distinct(batch)  # (new words, embedding)
        if self._stack is not None:
            fresh = self._stack.project(fresh)
        self._table = torch.cat([self._table, fresh]) if begin else fresh

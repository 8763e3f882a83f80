"""A SentenceTransformer with the methods of genpool's encoders, for the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from genpool.errors import InputError
from genpool.inference.explanation import Explanation, PairExplanation, explain_states
from genpool.inference.sentence_vectors import SentenceVectors, ignore_progress, map_by_length
from genpool.integrations.sentence_transformers.loading import load
from genpool.integrations.sentence_transformers.modules import PoolingModule, states_and_mask
from genpool.pooling import Pooled
from genpool.text import TextPipeline, Token, TruncationReport
from genpool.text.validation import require_text, require_texts

if TYPE_CHECKING:
    from genpool.integrations.onnx import Export

#: characters of a token, to guess the length of a text before it is split
CHARACTERS_PER_TOKEN = 4


@dataclass
class _TextLimits:
    """What the commands report of a text pipeline; the library does not count what it cuts."""

    max_length: int | None
    cut: TruncationReport = field(default_factory=TruncationReport)
    annotator: None = None


class SentenceTransformerEncoder(SentenceVectors):
    """A SentenceTransformer as an encoder of genpool, for its commands.

    Args:
        model: the model, on the device and in the type in which it encodes.

    Example:
        >>> encoder = SentenceTransformerEncoder.from_pretrained("minilm-generalized")
        >>> encoder.encode(["A man sleeps."]).shape
        >>> print(encoder.explain("A man sleeps."))   # with genpool's pooling
    """

    def __init__(self, model: SentenceTransformer) -> None:
        self.model = model.eval()
        self.text = cast(TextPipeline, _TextLimits(model.max_seq_length))

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Self:
        """Loads a folder that sentence-transformers saved, without running code in it."""
        return cls(load(path, device="cpu"))

    @property
    def output_dim(self) -> int:
        """The dimension of a sentence vector."""
        return int(cast(int, self.model.get_embedding_dimension()))

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """The data type of the model."""
        return next(self.model.parameters()).dtype

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim) of words, which are joined by spaces."""
        return self._encode_texts([" ".join(words) for words in sentences])

    def encode_stream(
        self,
        sentences: Iterable[str],
        batch_size: int = 64,
        done: Callable[[int], object] = ignore_progress,
    ) -> Iterator[Tensor]:
        """Yields the vectors of a stream of any length, in order and in bounded memory."""
        return map_by_length(
            require_texts(sentences),
            lambda text: len(text) // CHARACTERS_PER_TOKEN,
            self._encode_texts,
            batch_size,
            done,
        )

    def _encode_texts(self, texts: list[str]) -> Tensor:
        return self.model.encode(
            texts, batch_size=len(texts), convert_to_tensor=True, show_progress_bar=False
        )

    def explain(self, sentence: str) -> Explanation:
        """Returns the weights of each head of genpool's pooling, per token and dimension."""
        modules = list(self.model)
        pooling = self._pooling()
        features: dict[str, Any] = dict(self.model.preprocess([require_text(sentence)]))
        features = {
            name: value.to(self.device) if isinstance(value, Tensor) else value
            for name, value in features.items()
        }
        place = modules.index(pooling)
        with torch.no_grad():
            for module in modules[:place]:
                features = module(features)
        states, mask = states_and_mask(features, pooling.include_prompt)

        def project(pooled: Pooled) -> Pooled:
            later: dict[str, Any] = {"sentence_embedding": pooled.vector}
            for module in modules[place + 1 :]:
                later = module(later)
            return pooled._replace(vector=later["sentence_embedding"])

        tokens = self._tokens(sentence, features["input_ids"][0][mask[0]].tolist())
        return explain_states(sentence, tokens, states[0][mask[0]], pooling.pooling, project)

    def explain_pair(self, first: str, second: str) -> PairExplanation:
        """Returns which words two sentences are alike by."""
        return PairExplanation(self.explain(first), self.explain(second))

    def _tokens(self, sentence: str, ids: list[int]) -> list[Token]:
        """The word pieces with their offsets; special tokens have offsets (-1, -1)."""
        tokenizer: Any = self.model.tokenizer
        names = tokenizer.convert_ids_to_tokens(ids)
        offsets = [(0, 0)] * len(ids)
        if tokenizer.is_fast:
            limit = self.text.max_length
            options = {"truncation": limit is not None, "max_length": limit}
            offsets = tokenizer(sentence, return_offsets_mapping=True, **options)["offset_mapping"]
        return [
            Token(name, start, end) if end > start else Token(name, -1, -1)
            for name, (start, end) in zip(names, offsets, strict=True)
        ]

    def export_onnx(self, folder: str | Path, int8: bool = False) -> Export:
        """Writes transformer, pooling and later modules as one ONNX graph, and the tokenizer."""
        from genpool.integrations.onnx.transformer import export_transformer

        modules = list(self.model)
        pooling = self._pooling()
        place = modules.index(pooling)
        if place != 1 or not hasattr(modules[0], "auto_model"):
            names = ", ".join(type(module).__name__ for module in modules[:place])
            raise InputError(
                f"before the pooling the model has {names}; expected one Transformer. Export the "
                "parts yourself: genpool.integrations.onnx.export_transformer."
            )
        return export_transformer(
            cast(torch.nn.Module, modules[0].auto_model),
            pooling,
            folder,
            int8,
            tokenizer=self.model.tokenizer,
            later=modules[place + 1 :],
        )

    def _pooling(self) -> PoolingModule:
        for module in self.model:
            if isinstance(module, PoolingModule):
                return module
        names = ", ".join(type(module).__name__ for module in self.model)
        raise InputError(
            f"the model has the modules {names}; expected genpool's PoolingModule among them, "
            "which is what can be explained and exported."
        )

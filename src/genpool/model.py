"""The rooms joined: text, embedding, encoder, pooling, and a classifier on top."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.classifier import MLP, pair_features
from genpool.config import ModelSettings, Part
from genpool.embedding import TokenEmbedding
from genpool.encoder import ENCODERS, Encoded, Encoder
from genpool.errors import ConfigError, FolderError, InputError
from genpool.inference.batching import evaluation_mode, map_by_length
from genpool.inference.explanation import Explanation, pooling_weights
from genpool.inference.quick_encoder import QuickEncoder
from genpool.inference.sentence_vectors import (
    SentenceVectors,
    StreamEncoder,
    require_iterable,
    require_text,
    require_texts,
)
from genpool.inference.workers import WorkerPool
from genpool.pooling import POOLINGS, Pooled, Pooling
from genpool.progress import progress
from genpool.saving import storage
from genpool.saving.saved_model import SavedModel
from genpool.tensors.fast import fast
from genpool.tensors.packing import Packing
from genpool.text import Batch, TextPipeline, Token
from genpool.text.vocabulary import BEGIN, END

Vectors = NDArray[np.float32]

#: below so many sentences the inference form is not worth making
FEW = 64


def set_last_pooling_direction(settings: ModelSettings) -> ModelSettings:
    """Last pooling must know whether states are [forward ; backward]: the encoder says it."""
    encoder, pooling = ENCODERS.get(settings.encoder.name), settings.pooling
    # An unknown name is reported by the model, with the nearest one.
    if encoder is None or pooling.name != "last" or "bidirectional" in pooling.options:
        return settings
    options = {**pooling.options, "bidirectional": encoder.bidirectional}
    return replace(settings, pooling=Part(pooling.name, options))


def build_pooling(settings: ModelSettings, encoder: Encoder) -> Pooling:
    """The pooling of the settings, if the encoder gives what it needs."""
    cls = POOLINGS[settings.pooling.name]
    if cls.needs_gates and not encoder.has_gates:
        able = ", ".join(name for name, each in ENCODERS.items() if each.has_gates)
        raise ConfigError(
            f"{settings.pooling.name} pooling needs the input gates of an LSTM, which the encoder "
            f"{settings.encoder.name!r} does not have. Encoders that do: {able}."
        )
    return cls(encoder.output_dim, **settings.pooling.options)


class SentenceEncoder(SavedModel, SentenceVectors):
    """Sentences in, vectors out.

    Example:
        >>> model = SentenceEncoder.from_pretrained("my-model")
        >>> vectors = model.encode(["A man sleeps.", "A person rests."])   # (2, output_dim)
        >>> print(model.explain("A man sleeps."))
    """

    def __init__(self, text: TextPipeline, settings: ModelSettings | None = None) -> None:
        super().__init__(text, set_last_pooling_direction(settings or ModelSettings()))
        chosen = self.settings.embedding
        self.embedding = TokenEmbedding(
            len(text.vocabulary),
            chosen.word_dim,
            chosen.frozen,
            len(text.characters) if chosen.characters else 0,
            chosen.character_dim,
            chosen.character_widths,
            chosen.character_maps,
            chosen.dropout,
        )
        encoder = self.settings.encoder
        self.encoder = ENCODERS[encoder.name](self.embedding.output_dim, **encoder.options)
        self.pooling = build_pooling(self.settings, self.encoder)
        width = self.settings.projection.dim
        # Without a bias: a sentence with no token stays zeros.
        joined = self.pooling.output_dim
        self.projection = nn.Linear(joined, width, bias=False) if width else None

    @classmethod
    def _assemble(
        cls, text: TextPipeline, settings: ModelSettings, labels: tuple[str, ...]
    ) -> Self:
        return cls(text, settings)

    @classmethod
    def from_pretrained(cls, path: str | Path | None = None) -> Self:
        """The encoder of a folder, also of a classifier's; without a path, the embedded one."""
        if path is not None and storage.read_folder(path).config.get("kind") in CLASSIFIERS:
            return cast(Self, cast(Classifier, load_model(path)).encoder)
        return super().from_pretrained(path)

    @property
    def output_dim(self) -> int:
        return self.settings.projection.dim or self.pooling.output_dim

    def forward(self, batch: Batch, weights: bool = False) -> Pooled:
        """Pooled sentences. Unless the weights are asked for, no padded tensor is ever made."""
        if weights or not fast():
            return self.project(self._pool(self._states(batch), batch.mask))
        packing = Packing.from_mask(batch.mask)
        rows = self.embedding.rows(batch, packing)  # (rows, embedding)
        states, gates = self.encoder.encode_rows(rows, packing, self.pooling.needs_gates)
        return self.project(self.pooling.pool_rows(states, packing, gates))

    def project(self, pooled: Pooled) -> Pooled:
        """Gives the vector its final width; the heads stay as they are."""
        if self.projection is None:
            return pooled
        return pooled._replace(vector=self.projection(pooled.vector))

    def _states(self, batch: Batch) -> Encoded:
        vectors = self.embedding(batch)  # (batch, time, embedding)
        encoded: Encoded = self.encoder(vectors, batch.mask, gates=self.pooling.needs_gates)
        return encoded

    def _pool(self, encoded: Encoded, mask: Tensor) -> Pooled:
        more = {"gates": encoded.gates} if self.pooling.needs_gates else {}
        pooled: Pooled = self.pooling(encoded.states, mask, **more)
        return pooled

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        with evaluation_mode(self):
            vectors: Tensor = self(self.text.batch(sentences).to(self.device)).vector
            return vectors

    def encode_stream(
        self, sentences: Iterable[str], batch_size: int = 64, done: Any = lambda count: None
    ) -> Iterator[Tensor]:
        """Vectors of a stream of any length, in chunks (n, output_dim) and in order.

        Many sentences go through the inference form, made anew each time: the weights may have
        changed.
        """
        given = iter(sentences)
        first = list(islice(given, FEW))
        stream = chain(first, given)
        if len(first) < FEW or not fast() or self.device.type != "cpu":
            yield from super().encode_stream(stream, batch_size, done)
        else:
            yield from QuickEncoder(self).encode_stream(stream, batch_size, done)

    @contextmanager
    def streaming_form(self, workers: int = 1, int8: bool = False) -> Iterator[StreamEncoder]:
        """Yields the quick form of this model, or several of them in worker processes."""
        quick = QuickEncoder(self, int8=int8)  # complains here, not in a process of its own
        if workers == 1:
            yield quick
        else:
            with WorkerPool(self, workers, int8) as pool:
                yield pool

    def explain(self, sentence: str) -> Explanation:
        """What each head looked at: weights per token, and per dimension."""
        tokens = self.text.tokens(require_text(sentence))
        batch = self.text.batch([[token.text for token in tokens]]).to(self.device)
        if self.text.sentence_ends:
            names = self.text.vocabulary.words
            tokens = [Token(names[BEGIN], -1, -1), *tokens, Token(names[END], -1, -1)]
        with evaluation_mode(self):
            encoded = self._states(batch)
            weights = pooling_weights(
                encoded.states,
                lambda states: self._pool(encoded._replace(states=states), batch.mask),
            )
        return Explanation(sentence, tokens, weights[0].float().cpu().numpy())


class Classified(NamedTuple):
    """Logits (batch, classes), and the pooled sentences that they were made from."""

    logits: Tensor
    pooled: Pooled


class Classifier(SavedModel):
    """What the two classifiers share: an encoder, the MLP, and labels by name."""

    sentences_per_example: int

    def __init__(self, encoder: SentenceEncoder, labels: Sequence[str]) -> None:
        super().__init__(encoder.text, encoder.settings)
        wrong = isinstance(labels, str) or not all(isinstance(each, str) for each in labels)
        if wrong or len(labels) < 2 or len(set(labels)) != len(labels):
            raise InputError(f"labels are {labels!r}; expected two or more different texts.")
        self.labels = tuple(labels)
        self.encoder = encoder
        chosen = self.settings.classifier
        features = encoder.output_dim * (4 if self.sentences_per_example == 2 else 1)
        self.mlp = MLP(features, chosen.hidden_dim, len(labels), chosen.dropout)

    @classmethod
    def _assemble(
        cls, text: TextPipeline, settings: ModelSettings, labels: tuple[str, ...]
    ) -> Self:
        return cls(SentenceEncoder(text, settings), labels)

    def features(self, vectors: Tensor) -> Tensor:
        """Sentence vectors of a batch -> what the MLP sees."""
        raise NotImplementedError

    def forward(self, batch: Batch, weights: bool = False) -> Classified:
        pooled = self.encoder(batch, weights)
        return Classified(self.mlp(self.features(pooled.vector)), pooled)

    def predict_tokenized(
        self,
        examples: list[list[list[str]]],
        batch_size: int = 64,
        show_progress_bar: bool = False,
    ) -> Vectors:
        """Probabilities (examples, labels) of tokenised sentences, one or two an example."""

        def run(group: list[list[list[str]]]) -> Tensor:
            # One pass for both sides: first all first sentences, then all second ones.
            sentences = [words for side in zip(*group, strict=True) for words in side]
            with evaluation_mode(self):
                logits = self(self.text.batch(sentences).to(self.device)).logits
                return cast(Tensor, logits.float().softmax(dim=1).cpu())

        def longest(example: list[list[str]]) -> int:
            return max(len(words) for words in example)

        with progress("predicting", len(examples), shown=show_progress_bar) as done:
            chunks = list(map_by_length(examples, longest, run, batch_size, done))
        return torch.cat(chunks).numpy() if chunks else np.zeros((0, len(self.labels)), np.float32)

    def _best(self, probabilities: Vectors) -> list[str]:
        return [self.labels[number] for number in probabilities.argmax(axis=1)]


class TextClassifier(Classifier):
    """A label for each sentence.

    Example:
        >>> model = TextClassifier.from_pretrained("my-model")
        >>> model.predict(["The food was good."])
    """

    sentences_per_example = 1

    def features(self, vectors: Tensor) -> Tensor:
        return vectors

    def predict_proba(
        self, sentences: Sequence[str], batch_size: int = 64, show_progress_bar: bool = False
    ) -> Vectors:
        """Probabilities (sentences, labels), in the order of `labels`."""
        if isinstance(sentences, str):
            raise InputError("got one string; expected a list of sentences: predict([sentence]).")
        examples = [[self.text.words(each)] for each in require_texts(require_iterable(sentences))]
        return self.predict_tokenized(examples, batch_size, show_progress_bar)

    def predict(
        self, sentences: Sequence[str], batch_size: int = 64, show_progress_bar: bool = False
    ) -> list[str]:
        """The most probable label of each sentence."""
        return self._best(self.predict_proba(sentences, batch_size, show_progress_bar))


class PairClassifier(Classifier):
    """A label for each pair of sentences, such as premise and hypothesis.

    Example:
        >>> model = PairClassifier.from_pretrained("my-model")
        >>> model.predict([("A man sleeps.", "A person rests.")])
    """

    sentences_per_example = 2

    def features(self, vectors: Tensor) -> Tensor:
        """The first half of a batch are the first sentences, the second half the second ones."""
        first, second = vectors.chunk(2)
        return pair_features(first, second)

    def predict_proba(
        self,
        pairs: Sequence[tuple[str, str]],
        batch_size: int = 64,
        show_progress_bar: bool = False,
    ) -> Vectors:
        """Probabilities (pairs, labels), in the order of `labels`."""
        examples = []
        for number, pair in enumerate(require_iterable(pairs)):
            if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
                raise InputError(
                    f"pair {number} is {pair!r}; expected two sentences: "
                    "predict([(premise, hypothesis), ...])."
                )
            sides = [require_text(side, f"pair {number}: ") for side in pair]
            examples.append([self.text.words(side) for side in sides])
        return self.predict_tokenized(examples, batch_size, show_progress_bar)

    def predict(
        self,
        pairs: Sequence[tuple[str, str]],
        batch_size: int = 64,
        show_progress_bar: bool = False,
    ) -> list[str]:
        """The most probable label of each pair."""
        return self._best(self.predict_proba(pairs, batch_size, show_progress_bar))


#: the kinds of folder that hold a classifier
CLASSIFIERS = {each.__name__: each for each in (TextClassifier, PairClassifier)}


def load_model(path: str | Path) -> SentenceEncoder | TextClassifier | PairClassifier:
    """The model of a folder, whatever its kind."""
    kinds = {SentenceEncoder.__name__: SentenceEncoder, **CLASSIFIERS}
    kind = storage.read_folder(path).config.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise FolderError(f"{path} holds {kind!r}; expected one of {', '.join(kinds)}.")
    model: SentenceEncoder | TextClassifier | PairClassifier = kinds[kind].from_pretrained(path)
    return model

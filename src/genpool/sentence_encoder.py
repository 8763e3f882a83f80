"""The rooms joined: text, embedding, encoder and pooling make a sentence encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Self, cast

from torch import Tensor, nn

from genpool.config import ModelSettings, Part
from genpool.embedding import TokenEmbedding
from genpool.encoder import ENCODERS, Encoder
from genpool.errors import ConfigError
from genpool.inference.batching import evaluation_mode
from genpool.inference.explanation import Explanation, PairExplanation
from genpool.inference.influence import LeaveOneOut, pooling_weights
from genpool.inference.quick_cache import QuickEncoderCache
from genpool.inference.quick_encoder import QuickEncoder
from genpool.inference.sentence_vectors import (
    SentenceVectors,
    StreamEncoder,
    ignore_progress,
)
from genpool.inference.workers import WorkerPool
from genpool.pooling import POOLINGS, Pooled, Pooling
from genpool.saving import storage
from genpool.saving.saved_model import SavedModel
from genpool.tensors.checks import require_positive
from genpool.tensors.fast import fast
from genpool.tensors.packing import Packing
from genpool.text import Batch, TextPipeline, Token
from genpool.text.validation import require_iterable, require_text
from genpool.text.vocabulary import BEGIN, END

#: below this number of sentences the quick form is not worth making
QUICK_MIN_SENTENCES = 64


def set_pooling_direction(settings: ModelSettings) -> ModelSettings:
    """Returns settings that tell a pooling whether states are [forward ; backward].

    Only a pooling with `needs_direction` is told; the encoder decides, unless the settings do.
    """
    encoder, pooling = ENCODERS.get(settings.encoder.name), settings.pooling
    cls = POOLINGS.get(pooling.name)
    # An unknown name is reported by the model, with the nearest one.
    if encoder is None or cls is None or not cls.needs_direction:
        return settings
    options = {"bidirectional": encoder.bidirectional, **pooling.options}
    return replace(settings, pooling=Part(pooling.name, options))


def require_matching_ngrams(text: TextPipeline, settings: ModelSettings) -> None:
    """Raises ConfigError if the text pipeline makes other n-grams than the settings say."""
    buckets = settings.embedding.ngram_buckets
    if text.characters.buckets != buckets:
        raise ConfigError(
            f"embedding.ngram_buckets is {buckets}, but the text pipeline has "
            f"{text.characters.buckets}; create it "
            "with genpool.config.ngrams_of(settings.embedding)."
        )


def build_pooling(settings: ModelSettings, encoder: Encoder) -> Pooling:
    """Returns the pooling of the settings, if the encoder has what it needs."""
    cls = POOLINGS[settings.pooling.name]
    if cls.needs_gates and not encoder.has_gates:
        able = ", ".join(name for name, kind in ENCODERS.items() if kind.has_gates)
        raise ConfigError(
            f"{settings.pooling.name} pooling needs the input gates of an LSTM, which the encoder "
            f"{settings.encoder.name!r} does not have. Encoders that do: {able}."
        )
    return cls(encoder.output_dim, **settings.pooling.options)


class SentenceEncoder(SavedModel, SentenceVectors):
    """A model that turns sentences into vectors.

    `encode` returns the vectors, `similarity` their cosines, `explain` what each head of the
    pooling looked at. All of them can be used by several threads at once and in any mode: dropout
    is off inside, and `training` is left alone.

    Args:
        text: splits sentences into words and knows the vocabulary and the characters.
        settings: sizes and options of every part. Default: None, the settings of the paper.

    Attributes:
        text: the text pipeline; `text.cut` counts the tokens beyond `text.max_length`.
        settings: the settings, with every default filled in.
        embedding: the part that gives every token its vector, a PyTorch module.
        encoder: the part that gives every token its state.
        pooling: the part that makes one vector of the states.
        projection: a linear map of this vector; None where the settings have none.
        output_dim: the dimension of a sentence vector.

    Raises:
        ConfigError: an unknown encoder, pooling or option, or parts that do not fit together.
        InputError: a size that is not possible.

    Example:
        >>> model = SentenceEncoder.from_pretrained()
        >>> vectors = model.encode(["A man sleeps.", "A person rests."])   # (2, output_dim)
        >>> print(model.explain("A man sleeps."))
    """

    def __init__(self, text: TextPipeline, settings: ModelSettings | None = None) -> None:
        settings = set_pooling_direction(settings or ModelSettings())
        require_matching_ngrams(text, settings)
        super().__init__(text, settings)
        embedding = self.settings.embedding
        self.embedding = TokenEmbedding(
            len(text.vocabulary),
            embedding.word_dim,
            embedding.frozen,
            len(text.characters) if embedding.characters and not embedding.ngram_buckets else 0,
            embedding.character_dim,
            embedding.character_widths,
            embedding.character_maps,
            embedding.dropout,
            embedding.dropout_scaling,
            embedding.character_initialization,
            embedding.character_padding,
            len(text.characters) if embedding.ngram_buckets else 0,
            embedding.hidden_words,
        )
        encoder = self.settings.encoder
        self.encoder = ENCODERS[encoder.name](self.embedding.output_dim, **encoder.options)
        self.text = text.with_annotator(self.encoder.make_annotator())
        self.pooling = build_pooling(self.settings, self.encoder)
        projection_dim = self.settings.projection.dim
        if projection_dim is not None:
            require_positive(**{"projection.dim": projection_dim})
        # Without a bias: the vector of a sentence with no token stays zeros.
        self.projection = (
            nn.Linear(self.pooling.output_dim, projection_dim, bias=False)
            if projection_dim is not None
            else None
        )
        self._quick = QuickEncoderCache()

    @classmethod
    def _assemble(
        cls, text: TextPipeline, settings: ModelSettings, labels: tuple[str, ...]
    ) -> Self:
        return cls(text, settings)

    @classmethod
    def from_pretrained(cls, path: str | Path | None = None, *, mmap: bool = False) -> Self:
        """Loads a sentence encoder from a folder; nothing in the folder is run as code.

        Args:
            path: a folder that `save_pretrained` wrote, of a sentence encoder or of a classifier,
                whose encoder is returned then. Default: None, the encoder inside the package.
            mmap: leave the weights in the file and map it into memory, which processes on one
                machine share. The file must then not change while the model is in use.
                Default: False, which reads them.

        Returns:
            The encoder, on the CPU and in evaluation mode.

        Raises:
            FolderError: the folder is missing, incomplete, damaged, or not a genpool model.

        Example:
            >>> model = SentenceEncoder.from_pretrained("my-model")
        """
        return super().from_pretrained(path, mmap=mmap)

    @classmethod
    def _load(cls, folder: storage.SavedFolder) -> Self:
        """Returns the encoder of a folder that was opened, also of a classifier's."""
        from genpool.model import CLASSIFIERS  # which are made of this class

        if folder.kind in CLASSIFIERS:
            return cast(Self, CLASSIFIERS[folder.kind]._load(folder).encoder)
        return super()._load(folder)

    @property
    def output_dim(self) -> int:
        """The dimension of a sentence vector."""
        return self.settings.projection.dim or self.pooling.output_dim

    def forward(self, batch: Batch, weights: bool = False) -> Pooled:
        """Returns the pooled sentences of a batch, with gradients; the way of training.

        Args:
            batch: sentences, from `text.batch`, on the device of the model.
            weights: also return the pooling's weights, which needs a padded tensor of all heads.
                Default: False.

        Returns:
            `Pooled`: vector (batch, output_dim), heads (batch, heads, dim), and weights
            (batch, heads, time, dim or 1) or None.
        """
        packing = Packing.from_mask(batch.mask, batch.annotations)
        states, gates = self._states(batch, packing)
        return self.project(self._pool(states, gates, packing, weights))

    def _states(self, batch: Batch, packing: Packing) -> tuple[Tensor, Tensor | None]:
        """Packed states (rows, dim), and the gates (rows, width) where the pooling needs them."""
        rows = self.embedding.rows(batch, packing)  # (rows, embedding)
        return self.encoder.encode_rows(rows, packing, self.pooling.needs_gates)

    def _pool(
        self, states: Tensor, gates: Tensor | None, packing: Packing, weights: bool
    ) -> Pooled:
        if not weights and fast():
            return self.pooling.pool_rows(states, packing, gates)
        padded_gates = _padded(gates, packing)
        pooled: Pooled = self.pooling(packing.unpack(states), packing.mask(), *padded_gates)
        return pooled

    def project(self, pooled: Pooled) -> Pooled:
        """Returns `pooled` with the vector projected to `output_dim`; the heads stay the same."""
        if self.projection is None:
            return pooled
        return pooled._replace(vector=self.projection(pooled.vector))

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim) of tokenized sentences, as one batch.

        Args:
            sentences: the words of each sentence, from `text.words`.
        """
        with evaluation_mode():
            batch = self.text.batch(sentences).to(self.embedding.words.device)
            vectors: Tensor = self(batch).vector
        return vectors

    def encode_stream(
        self,
        sentences: Iterable[str],
        batch_size: int = 64,
        done: Callable[[int], object] = ignore_progress,
    ) -> Iterator[Tensor]:
        """Yields the vectors of a stream of any length, in order and in bounded memory.

        On a CPU many sentences go through a `QuickEncoder`, which is kept for the next call and
        made again when a weight has changed.

        Args:
            sentences: any iterable of sentences; it is read as the vectors are taken.
            batch_size: sentences per batch. Default: 64.
            done: called with the number of sentences of every finished batch.

        Yields:
            Tensors (n, output_dim), on the device of the model.

        Raises:
            InputError: one of them is not a string, or batch_size is below 1.
        """
        texts = iter(require_iterable(sentences))
        first = list(islice(texts, QUICK_MIN_SENTENCES))
        stream = chain(first, texts)
        if len(first) < QUICK_MIN_SENTENCES or not fast() or self.device.type != "cpu":
            yield from super().encode_stream(stream, batch_size, done)
            return
        try:
            yield from self._quick.get(self).encode_stream(stream, batch_size, done)
        finally:
            self._quick.drop_if_large()

    @contextmanager
    def streaming_form(self, workers: int = 1, int8: bool = False) -> Iterator[StreamEncoder]:
        """Yields the quick form of this model, or a pool of worker processes that each have one.

        Args:
            workers: processes that encode at the same time. Default: 1, this process alone.
            int8: round the weights to 8 bits. Default: False.

        Raises:
            InputError: int8 is not possible for this model.
        """
        quick = QuickEncoder(self, int8=int8)  # complains here, not in a process of its own
        if workers == 1:
            yield quick
        else:
            with WorkerPool(self, workers, int8) as pool:
                yield pool

    def explain(self, sentence: str) -> Explanation:
        """Returns what each head of the pooling looked at: influence and weights of every token.

        Args:
            sentence: one sentence. Tokens beyond `text.max_length` are left out.

        Returns:
            An `Explanation`; print it, or write `to_html()` to a file.

        Raises:
            InputError: the sentence is not a string.

        Example:
            >>> explanation = model.explain("A man sleeps.")
            >>> explanation.head_influence.shape   # (heads, tokens)
        """
        tokens = self.text.tokens(require_text(sentence))
        truncated = self.text.is_truncated(sentence)
        batch = self.text.batch([[token.text for token in tokens]]).to(self.device)
        if self.text.sentence_ends:
            names = self.text.vocabulary.words
            tokens = [Token(names[BEGIN], -1, -1), *tokens, Token(names[END], -1, -1)]
        packing = Packing.from_mask(batch.mask, batch.annotations)
        with evaluation_mode():
            states, gates = self._states(batch, packing)
            weights = pooling_weights(
                states, packing, lambda rows: self._pool(rows, gates, packing, weights=True)
            )  # (1, heads, tokens, dim or 1)
            pooled = self._pool(states, gates, packing, weights=False)
            without = self.pooling.heads_without(
                packing.unpack(states), packing.mask(), *_padded(gates, packing)
            )  # (1, heads, tokens, dim)
            vectors = LeaveOneOut.of(pooled, without, self.project)
            # A single sentence: packed rows are its tokens in order.
            words = [token.text for token in tokens]
            tree = self.encoder.tree(words, self.embedding.rows(batch, packing), packing)
        weights = weights[0].float().cpu()  # (heads, tokens, dim or 1)
        return Explanation(sentence, tokens, weights.numpy(), vectors, truncated, tree=tree)

    def explain_pair(self, first: str, second: str) -> PairExplanation:
        """Returns which words two sentences are alike by, and how alike they are in each head.

        Args:
            first: a sentence.
            second: another sentence.

        Returns:
            A `PairExplanation`; print it, or write `to_html()` to a file.

        Raises:
            InputError: a sentence is not a string.

        Example:
            >>> pair = model.explain_pair("A man sleeps.", "A person rests.")
            >>> pair.similarity, pair.similarity_influence
        """
        return PairExplanation(self.explain(first), self.explain(second))


def _padded(gates: Tensor | None, packing: Packing) -> list[Tensor]:
    """The gates (batch, time, width) as further arguments of a pooling; none where it has none."""
    return [] if gates is None else [packing.unpack(gates)]

"""The sentence encoder: text, embedding, encoder and pooling, joined to one model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Self, TypeVar, cast

from torch import Tensor, nn

from genpool.config import (
    EmbeddingSettings,
    ModelSettings,
    Part,
    ProjectionSettings,
    TextSettings,
    option_problems,
)
from genpool.embedding import TokenEmbedding
from genpool.encoder import ENCODERS, Encoder
from genpool.errors import ConfigError, InputError
from genpool.inference.explanation import Explanation, PairExplanation, explain_states
from genpool.inference.quick import QuickEncoder, QuickEncoderCache
from genpool.inference.sentence_vectors import SentenceVectors, evaluation_mode
from genpool.inference.workers import WorkerPool
from genpool.pooling import POOLINGS, Pooled, Pooling
from genpool.registry import Registry
from genpool.saving import storage
from genpool.saving.saved_model import SavedModel
from genpool.tensors.modules import fast, require_positive
from genpool.tensors.packing import Packing
from genpool.text import Batch, TextPipeline
from genpool.text.tokenizer import RULES
from genpool.text.validation import require_text

Module = TypeVar("Module")
#: below this number of sentences the quick form is not worth making
QUICK_MIN_SENTENCES = 64
#: settings that arguments of `TokenEmbedding` have the names of
SHARED_NAMES = {*inspect.signature(TokenEmbedding).parameters} & {
    *EmbeddingSettings.__dataclass_fields__
} - {"characters"}


class SentenceEncoder(SavedModel, SentenceVectors):  # type: ignore[override]
    """A model that turns sentences into vectors.

    `encode` returns the vectors, `similarity` their cosines, `explain` what each head of the
    pooling looked at. All of them can be used by several threads at once and in any mode: dropout
    is off inside, and `training` is left alone.

    The parts are ready modules. An encoder or a pooling of your own can be saved once its class is
    registered: `genpool.pooling.register("mine", MyPooling)`. `from_settings` makes the parts that
    settings describe.

    Args:
        text: splits sentences into words and knows the vocabulary and the characters.
        embedding: gives every token its vector.
        encoder: gives every token its state.
        pooling: makes one vector of the states.
        projection: a linear map of this vector, without a bias: the vector of a sentence with no
            token stays zeros. Default: None.

    Attributes:
        text: the text pipeline; `text.cut` counts the tokens beyond `text.max_length`.
        settings: the settings of all parts, read from them.
        output_dim: the dimension of a sentence vector.

    Raises:
        InputError: parts that do not fit together.

    Example:
        >>> model = SentenceEncoder.from_pretrained()
        >>> vectors = model.encode(["A man sleeps.", "A person rests."])   # (2, output_dim)
        >>> print(model.explain("A man sleeps."))

        >>> embedding = TokenEmbedding(len(text.vocabulary), word_dim=300)
        >>> encoder = BiLSTMEncoder(embedding.output_dim, hidden_dim=300)
        >>> model = SentenceEncoder(text, embedding, encoder, MyPooling(encoder.output_dim))
    """

    kind = "SentenceEncoder"

    def __init__(
        self,
        text: TextPipeline,
        embedding: TokenEmbedding,
        encoder: Encoder,
        pooling: Pooling,
        projection: nn.Linear | None = None,
    ) -> None:
        super().__init__()
        require_fitting_parts(text, embedding, encoder, pooling, projection)
        self.text = text.with_annotator(encoder.make_annotator())
        self.embedding, self.encoder, self.pooling = embedding, encoder, pooling
        self.projection = projection
        self._quick = QuickEncoderCache()

    @classmethod
    def from_settings(
        cls, text: TextPipeline, settings: ModelSettings | None = None, labels: Any = ()
    ) -> Self:
        """Returns the model that settings describe, with initial weights.

        Args:
            text: the text pipeline, which decides what the section `text` of the settings says.
            settings: sizes and options of every part. Default: None, those of the paper.
            labels: not used; the classifiers have the same method.

        Raises:
            ConfigError: an unknown encoder, pooling or option.
            InputError: a size that is not possible, or parts that do not fit together.

        Example:
            >>> settings = ModelSettings(pooling=Part("generalized", {"heads": 5}))
            >>> model = SentenceEncoder.from_settings(text, settings)
        """
        settings = settings or ModelSettings()
        embedding = build_embedding(text, settings.embedding)
        encoder = build_module(ENCODERS, settings.encoder, embedding.output_dim)
        part = settings.pooling
        if POOLINGS.require(part.name).needs_direction:  # the encoder decides, unless settings do
            part = Part(part.name, {"bidirectional": encoder.bidirectional, **part.options})
        pooling = build_module(POOLINGS, part, encoder.output_dim)
        dim = settings.projection.dim
        if dim is None:
            return cls(text, embedding, encoder, pooling)
        require_positive(**{"projection.dim": dim})
        return cls(
            text, embedding, encoder, pooling, nn.Linear(pooling.output_dim, dim, bias=False)
        )

    @classmethod
    def _load(cls, folder: storage.SavedFolder) -> Self:
        """Returns the encoder of a folder that was opened, also of a classifier's."""
        from genpool.model import MODELS  # which are made of this class

        if folder.kind == cls.kind or folder.kind not in MODELS:
            return super()._load(folder)
        return cast(Self, MODELS[folder.kind]._load(folder).encoder)

    @property
    def settings(self) -> ModelSettings:
        """The settings of all parts; ConfigError for a class that is not registered."""
        text, rules = self.text, self.text.tokenizer.rules
        shared = {name: self.embedding.options[name] for name in SHARED_NAMES}
        shared["character_widths"] = tuple(shared["character_widths"])
        if text.characters.buckets:
            shared["ngram_sizes"] = tuple(cast(Any, text.characters).sizes)
        return ModelSettings(
            TextSettings(
                # tokenizer.json has the rules themselves; those of another version have no name.
                cast(Any, rules if rules in RULES else "penn"),
                text.sentence_ends,
                text.max_length,
                text.vocabulary.lower_case_fallback,
                text.vocabulary.folding,
            ),
            EmbeddingSettings(
                characters=self.embedding.spelling is not None,
                ngram_buckets=text.characters.buckets,
                **shared,
            ),
            Part(ENCODERS.name_of(self.encoder), self.encoder.options),
            Part(POOLINGS.name_of(self.pooling), self.pooling.options),
            ProjectionSettings(self.projection.out_features if self.projection else None),
        )

    @property
    def output_dim(self) -> int:  # type: ignore[override]
        """The dimension of a sentence vector."""
        return self.projection.out_features if self.projection else self.pooling.output_dim

    def forward(self, batch: Batch, weights: bool = False) -> Pooled:
        """Returns the pooled sentences of a batch, with gradients, for training.

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
        # The form that all poolings share is over a padded tensor, and returns the weights too.
        pool_rows = type(self.pooling).pool_rows if fast() and not weights else Pooling.pool_rows
        return self.project(pool_rows(self.pooling, states, packing, gates))

    def _states(self, batch: Batch, packing: Packing) -> tuple[Tensor, Tensor | None]:
        """Packed states (rows, dim), and the gates (rows, width) where the pooling needs them."""
        rows = self.embedding.rows(batch, packing)  # (rows, embedding)
        return self.encoder.encode_rows(rows, packing, self.pooling.needs_gates)

    def project(self, pooled: Pooled) -> Pooled:
        """Returns `pooled` with the vector projected to `output_dim`."""
        if self.projection is None:
            return pooled
        return pooled._replace(vector=self.projection(pooled.vector))

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim) of the words of sentences, as one batch."""
        with evaluation_mode():
            batch = self.text.batch(sentences).to(self.embedding.words.device)
            vectors: Tensor = self(batch).vector
        return vectors

    def _encode_texts(
        self, texts: Iterator[str], batch_size: int, done: Callable[[int], object]
    ) -> Iterator[Tensor]:
        """On a CPU many sentences go through a `QuickEncoder`, which is kept for the next call and
        made again when a weight has changed."""
        first = list(islice(texts, QUICK_MIN_SENTENCES))
        stream = chain(first, texts)
        if len(first) < QUICK_MIN_SENTENCES or not fast() or not self.embedding.words.is_cpu:
            yield from super()._encode_texts(stream, batch_size, done)
        else:
            with self._quick.form_of(self) as quick:
                yield from quick._encode_texts(stream, batch_size, done)

    @contextmanager
    def streaming_form(self, workers: int = 1, int8: bool = False) -> Iterator[SentenceVectors]:
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
        tokens = self.text.with_ends(tokens)
        packing = Packing.from_mask(batch.mask, batch.annotations)
        with evaluation_mode():
            states, gates = self._states(batch, packing)  # (tokens, dim): one sentence, in order
            words = [token.text for token in tokens]
            tree = self.encoder.tree(words, self.embedding.rows(batch, packing), packing)
            return explain_states(
                sentence, tokens, states, self.pooling, self.project, gates, truncated, tree
            )

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


def build_module(classes: Registry[Module], part: Part, input_dim: int) -> Module:
    """Returns the encoder or the pooling that settings name; ConfigError if they are wrong."""
    cls = classes.require(part.name)
    if problems := option_problems(classes.kind, part.name, classes, part.options):
        raise ConfigError(problems)
    module: Module = cast(Any, cls)(input_dim, **part.options)
    return module


def build_embedding(text: TextPipeline, settings: EmbeddingSettings) -> TokenEmbedding:
    """Returns the embedding that settings describe, for the words and characters of a pipeline."""
    if text.characters.buckets != settings.ngram_buckets:
        raise ConfigError(
            f"embedding.ngram_buckets is {settings.ngram_buckets}, but the text pipeline has "
            f"{text.characters.buckets}; create it with "
            "genpool.config.ngrams_of(settings.embedding)."
        )
    ids, has_ngrams = len(text.characters), settings.ngram_buckets > 0
    return TokenEmbedding(
        len(text.vocabulary),
        characters=ids if settings.characters and not has_ngrams else 0,
        ngrams=ids if has_ngrams else 0,
        **{name: getattr(settings, name) for name in SHARED_NAMES},
    )


def require_fitting_parts(
    text: TextPipeline,
    embedding: TokenEmbedding,
    encoder: Encoder,
    pooling: Pooling,
    projection: nn.Linear | None,
) -> None:
    """Raises InputError for parts of a model that do not fit together."""
    sizes = [
        ("the embedding", "words", len(embedding.words), len(text.vocabulary), "the vocabulary"),
        ("the encoder", "input_dim", encoder.input_dim, embedding.output_dim, "the embedding"),
        ("the pooling", "input_dim", pooling.input_dim, encoder.output_dim, "the encoder"),
    ]
    characters = embedding.options["characters"] or embedding.options["ngrams"]
    if characters:
        expected = len(text.characters)
        sizes.append(("the embedding", "characters", characters, expected, "the text pipeline"))
    if projection is not None:
        dim = projection.in_features
        sizes.append(("the projection", "in_features", dim, pooling.output_dim, "the pooling"))
    for part, size, actual, expected, source in sizes:
        if actual != expected:
            raise InputError(f"{part} has {size}={actual}; expected {expected}, as {source} has.")
    if pooling.needs_gates and not encoder.has_gates:
        able = ", ".join(name for name, cls in ENCODERS.items() if cls.has_gates)
        raise InputError(
            f"{type(pooling).__name__} needs the input gates of an LSTM, which "
            f"{type(encoder).__name__} does not have. Encoders that do: {able}."
        )
    if projection is not None and cast(Any, projection.bias) is not None:
        raise InputError("the projection has a bias; expected nn.Linear(..., bias=False).")

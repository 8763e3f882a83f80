"""A genpool sentence encoder (words, BiLSTM, pooling) as the first module of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

from sentence_transformers.base.modules import InputModule
from tokenizers import Tokenizer

from genpool.errors import FolderError
from genpool.integrations.sentence_transformers.features import HEADS, WEIGHTS, Features
from genpool.integrations.sentence_transformers.saving import hub_arguments, name_requirement
from genpool.model import SentenceEncoder
from genpool.pooling import Pooled
from genpool.text import Batch
from genpool.text.validation import require_texts
from genpool.text.vocabulary import UNKNOWN

#: prefix of a batch's fields among the features; input_ids and attention_mask are for other modules
PREFIX = "words_"


class SentenceEncoderModule(InputModule):
    """A `genpool.SentenceEncoder` as the first module of a SentenceTransformer.

    It writes the features "sentence_embedding" (batch, output_dim), "head_vectors" (batch, heads,
    dim) and, if asked to, "head_weights" (batch, heads, time, dim).

    Args:
        encoder: the model; it is trained and saved as part of the sentence-transformers model.
        write_weights: also write "head_weights", for the attention penalty and for inspection. It
            takes more time and memory. Default: False.

    Example:
        >>> encoder = genpool.SentenceEncoder.from_pretrained("my-model")
        >>> model = SentenceTransformer(modules=[SentenceEncoderModule(encoder), Normalize()])
    """

    __module__ = "genpool.integrations.sentence_transformers"

    # A genpool folder is replaced as one, so it cannot be the folder of the other modules too.
    save_in_root = False
    config_keys = ["write_weights"]  # noqa: RUF012 (as in the base class)
    options_file = "genpool_module.json"  # config.json is the encoder's

    def __init__(self, encoder: SentenceEncoder, write_weights: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.encoder, self.write_weights = encoder, write_weights

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        """Rules and vocabulary, as a tokenizer of the `tokenizers` library."""
        vocabulary = self.encoder.text.vocabulary
        return self.encoder.text.tokenizer.to_tokenizers(vocabulary.ids, vocabulary.words[UNKNOWN])

    @property
    def max_seq_length(self) -> int | None:
        """Tokens that are kept of a sentence; None keeps all."""
        return self.encoder.text.max_length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self.encoder.text.max_length = value

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> Features:
        """Returns sentences as one batch of tensors.

        Args:
            inputs: the sentences.
            prompt: text put before every sentence. Default: None.
            kwargs: not used.

        Raises:
            InputError: an input is not a string.
        """
        text = self.encoder.text
        sentences = [(prompt or "") + sentence for sentence in require_texts(inputs)]
        batch = text.batch(text.words_batch(sentences))
        tensors = {PREFIX + field.name: getattr(batch, field.name) for field in fields(Batch)}
        features = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        return {"input_ids": batch.ids, "attention_mask": batch.mask.long(), **features}

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """Adds the sentence embeddings to the features that `preprocess` made.

        Args:
            features: a batch, as a dictionary of tensors.
            kwargs: not used.

        Returns:
            The same dictionary.
        """
        names = [field.name for field in fields(Batch) if PREFIX + field.name in features]
        batch = Batch(**{name: features[PREFIX + name] for name in names})
        pooled: Pooled = self.encoder(batch, weights=self.write_weights)
        if self.write_weights and pooled.weights is not None:
            features[WEIGHTS] = pooled.weights  # (batch, heads, time, dim)
        features[HEADS] = pooled.heads  # (batch, heads, dim)
        features["sentence_embedding"] = pooled.vector  # (batch, width)
        return features

    def get_embedding_dimension(self) -> int:
        """Returns the dimension of a sentence embedding."""
        return self.encoder.output_dim

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Writes a genpool folder, which `genpool.SentenceEncoder.from_pretrained` loads too.

        Args:
            output_path: the folder of this module.
            args: not used.
            kwargs: not used.
        """
        self.encoder.save_pretrained(output_path)
        self.save_config(output_path, self.options_file)
        name_requirement(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:  # type: ignore[override]
        """Loads the folder that `save` wrote.

        Args:
            model_name_or_path: the model.
            subfolder: the folder of this module in it. Default: "".
            kwargs: where to look, as sentence-transformers passes it (token, revision, ...).

        Raises:
            FolderError: the folder is missing, damaged, or of another kind.
        """
        location = hub_arguments(subfolder=subfolder, **kwargs)
        folder = cls.load_dir_path(model_name_or_path, **location)
        if folder is None:
            raise FolderError(f"{model_name_or_path} has no folder {subfolder!r}.")
        options = cls.load_config(model_name_or_path, config_filename=cls.options_file, **location)
        return cls(SentenceEncoder.from_pretrained(folder), **options)

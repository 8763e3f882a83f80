"""A genpool sentence encoder (words, BiLSTM, pooling) as the first module of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

from sentence_transformers.base.modules import InputModule
from tokenizers import Tokenizer

from genpool.errors import FolderError
from genpool.inference.sentence_vectors import require_texts
from genpool.integrations.sentence_transformers.features import HEADS, WEIGHTS, Features
from genpool.integrations.sentence_transformers.saving import hub_arguments, name_requirement
from genpool.model import SentenceEncoder
from genpool.pooling import Pooled
from genpool.text import Batch
from genpool.text.vocabulary import UNKNOWN

#: the fields of a batch among the features; input_ids and attention_mask are for other readers
PREFIX = "words_"


class SentenceEncoderModule(InputModule):
    """Text in, sentence embeddings out: everything that a `genpool.SentenceEncoder` does.

    Args:
        encoder: the model; it is trained and saved as part of the sentence-transformers model.
        write_weights: also write "head_weights", for the attention penalty and for looking at
            them. It takes more time and memory.

    Writes sentence_embedding (batch, width) and "head_vectors" (batch, heads, dim).

    Example:
        >>> encoder = genpool.SentenceEncoder.from_pretrained("my-model")
        >>> model = SentenceTransformer(modules=[SentenceEncoderModule(encoder), Normalize()])
    """

    __module__ = "genpool.integrations.sentence_transformers"

    # A genpool folder is replaced as a whole, so it cannot be the folder of the other modules too.
    save_in_root = False
    config_keys = ["write_weights"]  # noqa: RUF012 (the base class has it so)

    def __init__(self, encoder: SentenceEncoder, write_weights: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.encoder, self.write_weights = encoder, write_weights

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        vocabulary = self.encoder.text.vocabulary
        return self.encoder.text.tokenizer.to_tokenizers(vocabulary.ids, vocabulary.words[UNKNOWN])

    @property
    def max_seq_length(self) -> int | None:
        return self.encoder.text.max_length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self.encoder.text.max_length = value

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> Features:
        """Sentences as one batch of tensors."""
        text = self.encoder.text
        sentences = [(prompt or "") + each for each in require_texts(inputs)]
        batch = text.batch(text.words_batch(sentences))
        features = {PREFIX + each.name: getattr(batch, each.name) for each in fields(Batch)}
        return {"input_ids": batch.ids, "attention_mask": batch.mask.long(), **features}

    def forward(self, features: Features, **kwargs: Any) -> Features:
        batch = Batch(**{each.name: features[PREFIX + each.name] for each in fields(Batch)})
        pooled: Pooled = self.encoder(batch, weights=self.write_weights)
        if self.write_weights and pooled.weights is not None:
            features[WEIGHTS] = pooled.weights  # (batch, heads, time, dim)
        features[HEADS] = pooled.heads  # (batch, heads, dim)
        features["sentence_embedding"] = pooled.vector  # (batch, width)
        return features

    def get_embedding_dimension(self) -> int:
        return self.encoder.output_dim

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Writes a genpool folder, which `genpool.SentenceEncoder.from_pretrained` opens too."""
        self.encoder.save_pretrained(output_path)
        self.save_config(output_path, self.options_file)
        name_requirement(output_path)

    options_file = "genpool_module.json"  # config.json is the encoder's own

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:  # type: ignore[override]
        where = hub_arguments(subfolder=subfolder, **kwargs)
        folder = cls.load_dir_path(model_name_or_path, **where)
        if folder is None:
            raise FolderError(f"{model_name_or_path} has no folder {subfolder!r}.")
        options = cls.load_config(model_name_or_path, config_filename=cls.options_file, **where)
        return cls(SentenceEncoder.from_pretrained(folder), **options)

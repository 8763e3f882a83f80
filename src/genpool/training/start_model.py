"""Starting from a model: its encoder, with the words of the new data added.

While it is trained, the encoder holds the vectors of the words that occur in the data and no
others: no other word has a gradient, and a step takes a fraction of the time. `DataWords.complete`
puts the trained vectors back among those of all words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from genpool.config import ModelSettings
from genpool.errors import ConfigError
from genpool.model import Classifier, SentenceEncoder
from genpool.tensors.meta import on_meta_device
from genpool.text import TextPipeline, Vocabulary, canonical
from genpool.text.tokenizer import folded
from genpool.text.vocabulary import SPECIAL_WORDS, UNKNOWN
from genpool.training.settings import EMBEDDED, Freeze, RunSettings

#: sections of the settings that the start model decides
MODEL_SECTIONS = ("embedding", "encoder", "pooling", "projection")
_WORDS, _LETTERS = "embedding.words", "embedding.spelling.letters"


def start_settings(
    settings: RunSettings, start: SentenceEncoder | None = None
) -> tuple[RunSettings, SentenceEncoder | None]:
    """Returns the complete settings of a run, and the encoder that it starts from.

    Args:
        settings: the settings of a recipe.
        start: the encoder. None (default): that of `start.model`, which is loaded; without one,
            None is returned.

    Raises:
        FolderError: the folder of the model is missing, or not a genpool model.
        ConfigError: the settings contradict the model.
    """
    name = settings.start.model
    if start is None and not settings.start.is_scratch:
        start = SentenceEncoder.from_pretrained(None if name == EMBEDDED else name)
    return (settings, None) if start is None else (with_start_settings(settings, start), start)


def with_start_settings(settings: RunSettings, encoder: SentenceEncoder) -> RunSettings:
    """Returns the settings of a run with those of the model that it starts from.

    Raises:
        ConfigError: the recipe or an override gives one of them another value.
    """
    model, defaults = encoder.settings, RunSettings()
    dropout = settings.start.dropout
    if dropout is not None:
        model = replace(model, embedding=replace(model.embedding, dropout=dropout))
    problems = [
        f"{section} is set, but the run starts from the model {settings.start.model!r}, which has "
        "its own: remove the setting, or train new weights (--start scratch)."
        for section in MODEL_SECTIONS
        if getattr(settings, section) not in (getattr(defaults, section), getattr(model, section))
    ]
    max_length = settings.text.max_length
    text = model.text if max_length is None else replace(model.text, max_length=max_length)
    if settings.text not in (replace(defaults.text, max_length=max_length), text):
        problems.append(
            f"text is set, but the model {settings.start.model!r} has its own tokenizer; only "
            "text.max_length can be changed."
        )
    if settings.vectors.path is not None:
        problems.append(
            f"vectors.path is set, but the model {settings.start.model!r} has word vectors: remove "
            "the setting, or train new weights (--start scratch)."
        )
    if problems:
        raise ConfigError(problems)
    sections = {section: getattr(model, section) for section in MODEL_SECTIONS}
    return replace(settings, text=text, **sections)


@dataclass(frozen=True)
class DataWords:
    """The words of the data within the vocabulary of a start model.

    Attributes:
        text: the pipeline with all words: those of the start model, then the new ones.
        table: (all words, word_dim), the vectors before training.
        ids: (words of the data,), their ids in that table.
    """

    text: TextPipeline
    table: Tensor
    ids: Tensor

    def select(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the weights of a complete classifier with the words of the data alone."""
        name = f"encoder.{_WORDS}"
        return {**weights, name: weights[name][self.ids]}

    def complete(self, model: Classifier) -> Classifier:
        """Returns the classifier with the vectors of all words, in evaluation mode."""
        weights = dict(model.state_dict())
        trained = weights[f"encoder.{_WORDS}"]
        table = self.table.to(trained, copy=True)
        table[self.ids] = trained
        weights[f"encoder.{_WORDS}"] = table
        with on_meta_device():
            complete = type(model)._assemble(self.text, model.settings, model.labels)
        complete.load_state_dict({name: weights[name].clone() for name in weights}, assign=True)
        complete.notes = dict(model.notes)
        return complete.eval()


def start_encoder(
    start: SentenceEncoder,
    settings: ModelSettings,
    data_words: Iterable[str],
    new_counts: Counter[str],
    minimum_count: int,
    notes: dict[str, str],
) -> tuple[SentenceEncoder, DataWords]:
    """Returns the start model with the words of the data, and how to get all words back.

    A new word starts from the vector that the model has given it so far: that of unknown words,
    which its characters tell apart from the first step on, or that of its n-grams.

    Args:
        start: the model to start from.
        settings: the settings of the run's model.
        data_words: all words of all splits.
        new_counts: how often each word occurs in the training rows.
        minimum_count: occurrences that a word needs to be added.
        notes: receives the number of words.
    """
    old, pipeline = start.text.vocabulary, start.text
    known = sorted({old.id(word) for word in data_words} - set(range(len(SPECIAL_WORDS))))
    new = _new_words(old, new_counts, minimum_count)
    characters = pipeline.characters.with_words(new)
    entries = [old.words[word_id] for word_id in known]

    def text_of(words: Iterable[str]) -> TextPipeline:
        return TextPipeline(
            pipeline.tokenizer,
            Vocabulary([*words, *new], old.lower_case_fallback, old.folding),
            characters,
            pipeline.sentence_ends,
            settings.text.max_length,
        )

    weights = dict(start.state_dict())
    unknown = unknown_vectors(start, new)  # (new words, word_dim)
    table = torch.cat([weights[_WORDS], unknown])  # (all words, word_dim)
    added = range(len(old), len(old) + len(new))
    ids = torch.tensor([*range(len(SPECIAL_WORDS)), *known, *added])  # (words of the data,)
    weights[_WORDS] = table[ids]
    if _LETTERS in weights:
        letters = weights[_LETTERS]
        extra = letters[UNKNOWN].expand(len(characters) - len(letters), -1)  # (new, dim)
        weights[_LETTERS] = torch.cat([letters, extra])
    with on_meta_device():
        encoder = SentenceEncoder(text_of([*SPECIAL_WORDS, *entries]), settings)
    encoder.load_state_dict({name: tensor.clone() for name, tensor in weights.items()}, assign=True)
    notes["vocabulary"] = f"{len(old):,} words of the start model, {len(new):,} words added"
    return encoder, DataWords(text_of(old.words), table, ids)


def unknown_vectors(start: SentenceEncoder, words: list[str]) -> Tensor:
    """Returns the vectors (words, word_dim) that a model gives to words without an entry."""
    unknown = start.embedding.words.detach()[UNKNOWN].expand(len(words), -1)
    if start.embedding.backing is None or not words:
        return unknown
    ids = [start.text.characters.ids_of(word) for word in words]
    counts = torch.tensor([len(word) for word in ids])  # (words,)
    flat = torch.tensor([ngram for word in ids for ngram in word])  # (n-grams,)
    vectors: Tensor = start.embedding.backing(flat, counts).detach()
    return vectors


def freeze_encoder(encoder: SentenceEncoder, freeze: Freeze) -> None:
    """Excludes a part of the encoder from training."""
    for name, parameter in encoder.named_parameters():
        frozen = freeze == "encoder" or (freeze == "words" and name == _WORDS)
        parameter.requires_grad_(not frozen)


def _new_words(old: Vocabulary, counts: Counter[str], minimum_count: int) -> list[str]:
    """Returns the words to add, most frequent first."""
    new: Counter[str] = Counter()
    for word, count in counts.items():
        entry = _entry(old, word)
        if old.id(word) == UNKNOWN and entry not in SPECIAL_WORDS:
            new[entry] += count
    frequent = [word for word, count in new.items() if count >= minimum_count]
    return sorted(frequent, key=lambda word: (-new[word], word))


def _entry(vocabulary: Vocabulary, word: str) -> str:
    """Returns the form in which a new word is entered."""
    if vocabulary.folding:
        return folded(word)
    return canonical(word).lower() if vocabulary.lower_case_fallback else canonical(word)

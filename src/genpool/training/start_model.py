"""The encoder that a run starts from: new weights, or those of a model.

While a model is trained, its encoder holds the vectors of the words in the data and no others: no
other word has a gradient, and a step takes a fraction of the time. `DataWords.complete` puts the
trained vectors back among those of all words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from genpool.config import ngrams_of
from genpool.embedding.token import ngram_vectors
from genpool.errors import ConfigError, DataError, TrainingError
from genpool.model import Classifier, SentenceEncoder
from genpool.tensors.modules import on_meta_device
from genpool.text import (
    Characters,
    TextPipeline,
    Vocabulary,
    WordTokenizer,
    canonical,
    read_vectors,
    vector_table,
    wanted_words,
)
from genpool.text.tokenizer import folded
from genpool.text.vocabulary import SPECIAL_WORDS, UNKNOWN
from genpool.training.settings import EMBEDDED, SCRATCH, RunSettings

#: sections of the settings that the start model decides
MODEL_SECTIONS = ("embedding", "encoder", "pooling", "projection")
_WORDS, _LETTERS = "embedding.words", "embedding.spelling.letters"


def build_encoder(
    settings: Any, word_counts: Counter[str], notes: dict[str, str]
) -> SentenceEncoder:
    """Returns an encoder with initial weights and, if there is a vector file, its word vectors.

    `settings` are those of a training run or of a distillation, `word_counts` say how often each
    word occurs in the training text; notes receive the sizes and the coverage of the vectors.
    """
    rules, vectors_file, vectors = settings.vocabulary, settings.vectors, None
    seed, fallback = settings.training.seed, vectors_file.lower_case_fallback
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        entry = canonical(word)
        counts[entry.lower() if rules.lower_case else entry] += count
    if vectors_file.path and rules.vector_words:
        vectors = read_vectors(vectors_file.path)
    vocabulary = Vocabulary.build(
        counts,
        rules.minimum_count,
        vectors.rows if vectors else (),
        settings.text.lower_case_fallback,
        settings.text.folding,
    )
    characters = ngrams_of(settings.embedding) or Characters.build(vocabulary.words[4:])
    notes["vocabulary"] = f"{len(vocabulary):,} words, {len(characters):,} characters"
    text = TextPipeline(
        WordTokenizer(settings.text.rules, settings.text.folding),
        vocabulary,
        characters,
        settings.text.sentence_ends,
        settings.text.max_length,
    )
    torch.manual_seed(seed)
    try:
        encoder = SentenceEncoder.from_settings(text, settings.model)
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and "alloc" not in str(error):
            raise
        raise TrainingError(
            f"the model does not fit into memory ({str(error).splitlines()[0]}). Choose smaller "
            "sizes, or fewer words: --set vocabulary.minimum_count=2"
        ) from error
    if vectors_file.path:
        if vectors is None:
            vectors = read_vectors(vectors_file.path, only=wanted_words(vocabulary, fallback))
        dim = settings.embedding.word_dim
        if vectors.dim != dim:
            raise DataError(
                f"the vectors have {vectors.dim} dimensions, but embedding.word_dim is {dim}: "
                f"--set embedding.word_dim={vectors.dim}",
                vectors_file.path,
            )
        std = vectors_file.std
        table, coverage = vector_table(vocabulary, vectors, counts, seed, std, fallback)
        with torch.no_grad():
            encoder.embedding.words.copy_(torch.from_numpy(table))  # (vocabulary, dim)
        notes["coverage"] = str(coverage)
    return encoder


def start_settings(
    settings: RunSettings, start: SentenceEncoder | None = None
) -> tuple[RunSettings, SentenceEncoder | None]:
    """Returns the settings of a run with those of the model that it starts from, and that encoder.

    The model is that of `start.model` unless it is given; None is returned for new weights.
    Raises ConfigError if the recipe or an override contradicts the model.
    """
    name = settings.start.model
    if start is None and name != SCRATCH:
        start = SentenceEncoder.from_pretrained(None if name == EMBEDDED else name)
    if start is None:
        return settings, None
    model, defaults = start.settings, RunSettings()
    dropout = settings.start.dropout
    if dropout is not None:
        model = replace(model, embedding=replace(model.embedding, dropout=dropout))
    wrong = [
        section
        for section in MODEL_SECTIONS
        if getattr(settings, section) not in (getattr(defaults, section), getattr(model, section))
    ]
    if settings.vectors.path is not None:
        wrong.append("vectors.path")
    problems = [
        f"{setting} is set, but the run starts from the model {name!r}, which has its own: remove "
        "the setting, or train new weights (--start scratch)."
        for setting in wrong
    ]
    max_length = settings.text.max_length
    text = model.text if max_length is None else replace(model.text, max_length=max_length)
    if settings.text not in (replace(defaults.text, max_length=max_length), text):
        problems.append(
            f"text is set, but the model {name!r} has its own tokenizer; only text.max_length can "
            "be changed."
        )
    if problems:
        raise ConfigError(problems)
    sections = {section: getattr(model, section) for section in MODEL_SECTIONS}
    return replace(settings, text=text, **sections), start


@dataclass(frozen=True)
class DataWords:
    """The words of the data within the vocabulary of a start model."""

    text: TextPipeline  # with all words: those of the start model, then the new ones
    table: Tensor  # (all words, word_dim), the vectors before training
    ids: Tensor  # (words of the data,), their ids in that table

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
            complete = type(model).from_settings(self.text, model.settings, model.labels)
        complete.load_state_dict({name: weights[name].clone() for name in weights}, assign=True)
        complete.notes = dict(model.notes)
        return complete.eval()


def start_encoder(
    start: SentenceEncoder,
    settings: RunSettings,
    data_words: Iterable[str],
    counts: Counter[str],
    notes: dict[str, str],
) -> tuple[SentenceEncoder, DataWords]:
    """Returns the start model with the words of the data, and how to get all words back.

    A new word starts from the vector that the model has given it so far. `data_words` are those of
    all splits, `counts` how often each occurs in the training rows.
    """
    old, pipeline, freeze = start.text.vocabulary, start.text, settings.start.freeze
    known = sorted({old.id(word) for word in data_words} - set(range(len(SPECIAL_WORDS))))
    new = []
    if freeze == "nothing":
        new = _new_words(old, counts, settings.vocabulary.minimum_count)
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
    table = torch.cat([weights[_WORDS], unknown_vectors(start, new)])  # (all words, word_dim)
    added = range(len(old), len(old) + len(new))
    ids = torch.tensor([*range(len(SPECIAL_WORDS)), *known, *added])  # (words of the data,)
    weights[_WORDS] = table[ids]
    if _LETTERS in weights:
        letters = weights[_LETTERS]
        extra = letters[UNKNOWN].expand(len(characters) - len(letters), -1)  # (new, dim)
        weights[_LETTERS] = torch.cat([letters, extra])
    with on_meta_device():
        encoder = SentenceEncoder.from_settings(text_of([*SPECIAL_WORDS, *entries]), settings.model)
    encoder.load_state_dict({name: tensor.clone() for name, tensor in weights.items()}, assign=True)
    for name, parameter in encoder.named_parameters():
        frozen = freeze == "encoder" or (freeze == "words" and name == _WORDS)
        parameter.requires_grad_(not frozen)
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
    return ngram_vectors(flat, counts, start.embedding.backing["table"]).detach()


def _new_words(old: Vocabulary, counts: Counter[str], minimum_count: int) -> list[str]:
    """Returns the words to add, most frequent first."""
    new: Counter[str] = Counter()
    for word, count in counts.items():
        entry = folded(word) if old.folding else canonical(word)
        if old.lower_case_fallback and not old.folding:
            entry = entry.lower()
        if old.id(word) == UNKNOWN and entry not in SPECIAL_WORDS:
            new[entry] += count
    frequent = [word for word, count in new.items() if count >= minimum_count]
    return sorted(frequent, key=lambda word: (-new[word], word))

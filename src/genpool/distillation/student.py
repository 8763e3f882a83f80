"""The student before training: a new encoder or an earlier one, its data, and its axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from genpool.disk.row_cache import HalfRows
from genpool.distillation.lesson import aligned_directions, leading_directions
from genpool.distillation.settings import DistillationSettings
from genpool.errors import ConfigError
from genpool.model import SentenceEncoder
from genpool.text import Characters, TextPipeline, Vocabulary, WordTable, WordTokenizer
from genpool.training.start_model import build_encoder

#: sentences from which the axes of an earlier student are computed
ALIGNED_SENTENCES = 20_000


@dataclass
class PreparedStudent:
    """A student, the sentences it is trained on as rows of a word table, the axes (teacher dim,
    student dim) by which the teacher's vectors are multiplied, and notes for the model card."""

    model: SentenceEncoder
    table: WordTable
    rows: list[np.ndarray]
    axes: Tensor
    notes: dict[str, str]


def prepare_student(
    settings: DistillationSettings, sentences: Sequence[str], vectors: HalfRows
) -> PreparedStudent:
    """Returns a student with initial weights, or the one that `training.start` names.

    `vectors` are those of the teacher, (sentences, dim). ConfigError if the student's would have
    more dimensions.
    """
    notes = {"sentences": f"{len(sentences):,}"}
    start = settings.training.start
    if start is None:
        model, words = _new(settings, sentences, notes)
    else:
        model = SentenceEncoder.from_pretrained(start)
        words = model.text.words_batch(sentences)
        earlier = model.notes.get("sentences", "?")
        notes["started from"] = f"an earlier student ({earlier} sentences)"
    teacher_dim: int = vectors.shape[1]
    if model.output_dim > teacher_dim:
        raise ConfigError(
            f"the student's vectors have {model.output_dim} dimensions, the teacher's "
            f"{teacher_dim}; expected no more than that: --set projection.dim={teacher_dim}"
        )
    if start is None:
        axes = leading_directions(vectors, model.output_dim)
    else:
        axes = _learned_axes(model, sentences, vectors)
        if settings.training.axes == "leading" and model.projection is not None:
            axes = turn_to_leading_axes(model.projection, axes, vectors)
    table = model.text.table(spell_known=model.settings.embedding.hidden_words > 0)
    rows = [table.row(sentence, model.text.sentence_ends) for sentence in words]
    return PreparedStudent(model, table, rows, axes, notes)


def _new(
    settings: DistillationSettings, sentences: Sequence[str], notes: dict[str, str]
) -> tuple[SentenceEncoder, list[list[str]]]:
    """Returns an encoder with initial weights, and the words of all sentences."""
    # The student's pipeline needs the vocabulary; until then, this one splits and truncates alike.
    splitter = TextPipeline(
        WordTokenizer(settings.text.rules, settings.text.folding),
        Vocabulary.build({}),
        Characters(""),
        max_length=settings.text.max_length,
    )
    words = splitter.words_batch(sentences)
    counts = Counter(word for sentence in words for word in sentence)
    seed = settings.training.seed
    model = build_encoder(
        settings.model, settings.vocabulary, settings.vectors, seed, counts, notes
    )
    return model, words


def _learned_axes(model: SentenceEncoder, sentences: Sequence[str], vectors: HalfRows) -> Tensor:
    """Returns the axes that an earlier student was trained on, from a sample of the corpus."""
    sample = np.random.default_rng(0).permutation(len(sentences))[:ALIGNED_SENTENCES]
    texts = [sentences[position] for position in sample]
    student = model.encode(texts, convert_to_tensor=True)  # (sample, student dim)
    return aligned_directions(torch.from_numpy(vectors[sample]), student)


def turn_to_leading_axes(projection: nn.Linear, axes: Tensor, vectors: HalfRows) -> Tensor:
    """Rotates the projection of a student to the axes of the largest variance, which are returned.

    The student's cosines stay the same. Its first dimensions say most about the new teacher too,
    which its vectors need to be truncated. `axes` (teacher dim, student dim) are those that it has
    learned, `vectors` (sentences, teacher dim) those of the new teacher.
    """
    leading = leading_directions(vectors, projection.out_features)  # (teacher dim, student dim)
    # The closest rotation: the two sets of axes may span different parts of the teacher's space.
    left, _, right = torch.linalg.svd(axes.double().T @ leading.double())
    rotation = (left @ right).float()  # (student dim, student dim)
    with torch.no_grad():
        projection.weight.copy_(rotation.T @ projection.weight)
    return leading

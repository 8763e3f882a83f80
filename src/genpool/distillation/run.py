"""A distillation run: one step, one evaluation, and its end."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from genpool.distillation.agreement import agreement_by_source
from genpool.distillation.corpus import Group, corpus_fingerprint
from genpool.distillation.loss import distillation_loss
from genpool.distillation.neighbours import cut_batches, neighbour_order
from genpool.distillation.settings import DistillationLoopSettings, DistillationSettings
from genpool.distillation.student import prepare_student
from genpool.distillation.vector_cache import HalfVectors
from genpool.errors import DataError, TrainingError
from genpool.jobs.evaluate import evaluate_similarity
from genpool.model import SentenceEncoder
from genpool.saving.quantization import is_table
from genpool.training.run_folder import RunFolder
from genpool.training.state import (
    ResumableRun,
    SavedState,
    restore_weights,
    trainable_parameters,
    trained_weights,
)


@dataclass(frozen=True)
class Lesson:
    """What a student learns, and what it is scored on besides the dev table.

    Attributes:
        groups: the sentences, in groups.
        vectors: (sentences, dim), the vectors to learn.
        held_out: sentences that are not learned, by source. Default: none.
        held_out_vectors: (held-out sentences, dim). Default: none.
    """

    groups: list[Group]
    vectors: HalfVectors
    held_out: dict[str, list[str]] = field(default_factory=dict)
    held_out_vectors: HalfVectors = field(default_factory=lambda: np.empty((0, 0), np.float16))


@dataclass
class EpochProgress:
    """What has been done of the epoch: its batches, their sentences, summed loss, and seconds."""

    batches: int = 0
    sentences: int = 0
    loss: float = 0.0
    seconds: float = 0.0


@dataclass
class DistillationState(SavedState):
    """The state of a distillation run.

    Attributes:
        under_way: what has been done of the current epoch.
        best: the line of metrics of the best epoch so far.
    """

    under_way: EpochProgress = field(default_factory=EpochProgress)
    best: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        values = {**saved, "under_way": EpochProgress(**saved["under_way"])}
        values.pop("sentences", None)  # genpool 0.1 saved it in place of a fingerprint
        return cls(**values)


class DistillationRun(ResumableRun[SentenceEncoder, DistillationState]):
    """A student in training: its parts are called by `genpool.distillation.loop`."""

    def __init__(
        self,
        settings: DistillationSettings,
        data: Path,
        folder: RunFolder,
        lesson: Lesson,
        show_progress: bool,
    ) -> None:
        groups, vectors = lesson.groups, lesson.vectors
        if len(vectors) < 2:
            raise DataError("the corpus has a single sentence; expected two or more", data)
        self.settings, self.lesson, self.groups, self.vectors = settings, lesson, groups, vectors
        training = settings.training
        self.dev = None if training.dev is None else data / training.dev
        sentences = [sentence for group in groups for sentence in group]
        self.student = prepare_student(settings, sentences, vectors)
        model = self.student.model
        if training.freeze_words:
            for name, weights in model.named_parameters():
                weights.requires_grad_(not is_table(name))
        optimizer = torch.optim.Adam(
            trainable_parameters(model), lr=training.learning_rate, fused=True
        )
        state = DistillationState(data=corpus_fingerprint(groups, self.dev))
        super().__init__(model, optimizer, state, folder, show_progress=show_progress)
        unordered = cut_batches(np.arange(len(vectors)), training.batch_size)
        if training.neighbours == 1:
            unordered = group_batches(groups, training.batch_size, range(len(groups)))
        per_epoch = sum(1 for _ in unordered)
        self.total_steps = per_epoch * training.epochs

    def epoch_batches(self) -> Iterator[list[int]]:
        """Yields the batches of the current epoch, in an order that seed and epoch decide."""
        training = self.settings.training
        random = np.random.default_rng([training.seed, self.state.epoch])
        if training.neighbours > 1:
            targets = self._targets(self.vectors).numpy()  # (sentences, dim)
            order = neighbour_order(targets, training.neighbours, random)
            return cut_batches(order, training.batch_size)
        order = random.permutation(len(self.groups)).tolist()
        return group_batches(self.groups, training.batch_size, order)

    def step(self, batch: list[int]) -> None:
        """Trains on one batch of sentences."""
        began = time.monotonic()
        loss = self._loss(batch)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss is {float(loss.detach())} at step {self.state.step + 1} (epoch "
                f"{self.state.epoch + 1}); the run stops. Try a lower rate: "
                "--set training.learning_rate=..."
            )
        self._update(loss)
        progress = self.state.under_way
        progress.loss += float(loss.detach()) * len(batch)
        progress.batches += 1
        progress.sentences += len(batch)
        progress.seconds += time.monotonic() - began
        self.state.step += 1

    def _loss(self, batch: list[int]) -> Tensor:
        training, student = self.settings.training, self.student
        # Dropout is decided by seed and step: nothing about it has to be saved.
        torch.manual_seed(1_000_003 * training.seed + self.state.step)
        self.model.train()
        target = self._targets(self.vectors[batch])  # (batch, dim)
        rows = [student.rows[sentence] for sentence in batch]
        vectors: Tensor = self.model(student.table.batch(rows)).vector  # (batch, dim)
        return distillation_loss(vectors, target, training.similarity, training.widths)

    def _targets(self, vectors: HalfVectors) -> Tensor:
        """Returns vectors to learn (sentences, teacher dim) on the student's axes."""
        return torch.from_numpy(vectors).float() @ self.student.axes

    def _update(self, loss: Tensor) -> None:
        training = self.settings.training
        factor = learning_rate_factor(self.state.step, self.total_steps, training)
        for group in self.optimizer.param_groups:
            group["lr"] = training.learning_rate * factor
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if training.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), training.clip)
        self.optimizer.step()

    def evaluate(self) -> None:
        """Ends an epoch: scores the student on dev, logs a line of metrics, keeps the best."""
        state = self.state
        state.epoch += 1
        line: dict[str, Any] = {
            "epoch": state.epoch,
            "step": state.step,
            "loss": state.under_way.loss / state.under_way.sentences,
            "seconds": state.under_way.seconds,
        }
        if self.dev is not None:
            self.model.eval()
            report, _ = evaluate_similarity(self.model, self.dev)
            line["dev_spearman"] = report.spearman
        if self.lesson.held_out:
            self.model.eval()
            scores = agreement_by_source(
                self.model.encode, self.lesson.held_out, self.lesson.held_out_vectors
            )
            line["agreement"] = sum(scores.values()) / len(scores)
            line["worst_agreement"] = min(scores.values())
        if _score(line) > _score(state.best):
            state.best, self.best = line, trained_weights(self.model)
        state.under_way = EpochProgress()
        self.log(line)

    def finish(self) -> dict[str, Any]:
        """Saves the best student with the notes of its card; returns the metrics of its epoch."""
        best = self.state.best
        restore_weights(self.model, self.best)
        self.model.notes |= {
            "trained": f"to return the vectors of {' and '.join(self.settings.teacher.models)}",
            **self.student.notes,
            "epochs": str(best["epoch"]),
        }
        if "dev_spearman" in best:
            self.model.notes["dev Spearman"] = f"{best['dev_spearman']:.4f}"
        self.model.eval().save_pretrained(self.folder.best)
        self.folder.write(self.folder.results, json.dumps(best, indent=2) + "\n")
        shutil.rmtree(self.folder.checkpoints, ignore_errors=True)
        return best


def _score(line: dict[str, Any]) -> float:
    """Returns what decides which epoch is kept: the dev scores; without any, the last is."""
    scores = [line[name] for name in ("dev_spearman", "agreement") if name in line]
    if not line:
        return -2.0
    return float(sum(scores) / len(scores)) if scores else float(line["epoch"])


def group_batches(groups: list[Group], size: int, order: Iterable[int]) -> Iterator[list[int]]:
    """Yields batches of sentence positions: whole groups in this order, `size` sentences or more.

    A batch ends with the group that fills it.
    """
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    batch: list[int] = []
    for group in order:
        batch += range(starts[group], starts[group + 1])
        if len(batch) >= size:
            yield batch
            batch = []
    if len(batch) > 1:  # a single sentence has no similarities
        yield batch


def learning_rate_factor(step: int, steps: int, settings: DistillationLoopSettings) -> float:
    """Returns the factor of the learning rate: it rises linearly, then falls linearly to zero."""
    if step < settings.warm_up:
        return (step + 1) / settings.warm_up
    return max(0.0, (steps - step) / max(1, steps - settings.warm_up))

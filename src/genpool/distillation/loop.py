"""The loop that teaches a student; after a stop it goes on from its last checkpoint."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from genpool.distillation.corpus import Group, read_corpus
from genpool.distillation.loss import (
    aligned_directions,
    distillation_loss,
    leading_directions,
)
from genpool.distillation.settings import DistillationLoopSettings, DistillationSettings
from genpool.distillation.teacher import HalfVectors, teacher_vectors
from genpool.errors import ConfigError, Interrupted, TrainingError
from genpool.jobs.tables import evaluate_similarity
from genpool.model import SentenceEncoder
from genpool.progress import progress
from genpool.text import Characters, TextPipeline, Vocabulary, WordTable, WordTokenizer
from genpool.training.build_encoder import build_encoder
from genpool.training.checkpoint import load_checkpoint, save_checkpoint
from genpool.training.interrupt import catch_interrupts
from genpool.training.run_folder import RunFolder
from genpool.training.state import (
    load_tensors,
    restore_weights,
    state_tensors,
    trained_weights,
)

#: sentences by which the axes of an earlier student are found
ALIGNED = 20_000


def distil(
    settings: DistillationSettings,
    data: str | Path,
    out: str | Path,
    resume: bool = False,
    cache: str | Path | None = None,
    show_progress: bool = True,
) -> dict[str, Any]:
    """Trains a student and saves it in out/best; gives the metrics of its epoch.

    cache: where the teacher's vectors are kept; several runs on one corpus can share them.
    """
    folder = RunFolder(out)
    folder.check(settings, resume)
    groups = read_corpus(settings.corpus, Path(data), settings.training.seed)
    sentences = [sentence for group in groups for sentence in group]
    folder.begin(settings, {"data": str(data), "sentences": len(sentences)})
    place = Path(cache) if cache is not None else folder.path / "teacher"
    vectors = teacher_vectors(settings.teacher.model, sentences, place, show_progress)
    lesson = DistillationRun(settings, Path(data), folder, groups, vectors, show_progress)
    if resume:
        lesson.resume()
    while lesson.epoch < settings.training.epochs:
        lesson.run_epoch()
    return lesson.finish()


def group_batches(groups: list[Group], size: int, order: np.ndarray) -> Iterator[list[int]]:
    """Numbers of sentences, whole groups in the given order, `size` sentences or a few more."""
    starts = np.cumsum([0, *map(len, groups)])
    batch: list[int] = []
    for number in order:
        batch += range(starts[number], starts[number + 1])
        if len(batch) >= size:
            yield batch
            batch = []
    if len(batch) > 1:  # a single sentence has no similarities
        yield batch


@dataclass
class EpochProgress:
    """What has been done of the epoch: its batches, their sentences, summed loss, and seconds."""

    batches: int = 0
    sentences: int = 0
    loss: float = 0.0
    seconds: float = 0.0


class DistillationRun:
    """A student, its optimizer and where it is."""

    def __init__(
        self,
        settings: DistillationSettings,
        data: Path,
        folder: RunFolder,
        groups: list[Group],
        vectors: HalfVectors,
        show_progress: bool,
    ) -> None:
        self.settings, self.data, self.folder = settings, data, folder
        self.groups, self.vectors, self.shown = groups, vectors, show_progress
        self.notes: dict[str, str] = {"sentences": f"{len(vectors):,}"}
        self.student, self.rows, self.table = self._prepare()
        self.student.train()
        width = self.student.output_dim
        if width > vectors.shape[1]:
            raise ConfigError(
                f"the student's vectors have {width} numbers, the teacher's {vectors.shape[1]}; "
                f"expected no more than that: --set projection.dim={vectors.shape[1]}"
            )
        self.axes = self._axes(width)  # (teacher's dim, width)
        self.optimizer = torch.optim.Adam(
            [each for each in self.student.parameters() if each.requires_grad],
            lr=settings.training.learning_rate,
            fused=True,
        )
        self.epoch = self.step = 0
        self.under_way = EpochProgress()
        self.saved_at, self.metrics_length = time.monotonic(), 0
        self.best: dict[str, Any] = {}
        self.best_weights = trained_weights(self.student)
        size = settings.training.batch_size
        per_epoch = sum(1 for _ in group_batches(groups, size, np.arange(len(groups))))
        self.steps = per_epoch * settings.training.epochs

    def _axes(self, width: int) -> Tensor:
        if self.settings.training.start is None:
            return leading_directions(self.vectors, width)
        sentences = [sentence for group in self.groups for sentence in group]
        some = np.random.default_rng(0).permutation(len(sentences))[:ALIGNED]
        own = self.student.encode([sentences[at] for at in some], convert_to_tensor=True)
        return aligned_directions(torch.from_numpy(self.vectors[some]), cast(Tensor, own))

    def _prepare(self) -> tuple[SentenceEncoder, list[np.ndarray], WordTable]:
        """The student, and the corpus as numbers of words."""
        student, words = self._student()
        table = student.text.table()
        return student, [table.row(each, student.text.sentence_ends) for each in words], table

    def _student(self) -> tuple[SentenceEncoder, list[list[str]]]:
        """A fresh student, or an earlier one that goes on, and the words of all sentences."""
        settings = self.settings
        sentences = [sentence for group in self.groups for sentence in group]
        if settings.training.start is not None:
            student = SentenceEncoder.from_pretrained(settings.training.start)
            self.notes["began as"] = f"an earlier student ({student.notes.get('sentences', '?')})"
            return student, student.text.words_batch(sentences)
        chosen = settings.text
        # The pipeline of the student does not exist yet; this one splits and cuts as it will.
        splitter = TextPipeline(
            WordTokenizer(chosen.rules),
            Vocabulary.build({}),
            Characters(""),
            max_length=chosen.max_length,
        )
        words = splitter.words_batch(sentences)
        spelled = Counter(word for sentence in words for word in sentence)
        student = build_encoder(
            settings.model,
            settings.vocabulary,
            settings.vectors,
            settings.training.seed,
            spelled,
            self.notes,
        )
        return student, words

    def resume(self) -> None:
        checkpoint = load_checkpoint(self.folder.checkpoints)
        if checkpoint is None:
            return
        state = checkpoint.state
        if state["sentences"] != len(self.vectors):
            raise TrainingError(
                f"{self.folder.path}: the corpus has {len(self.vectors):,} sentences, this run was "
                f"begun with {state['sentences']:,}. Give the same --data, or another folder: --out"
            )
        self.best_weights = load_tensors(checkpoint.tensors, self.student, self.optimizer)
        self.epoch, self.step, self.best = state["epoch"], state["step"], state["best"]
        self.under_way = EpochProgress(**state["under_way"])
        self.metrics_length = state["metrics_length"]
        self.folder.cut_metrics(self.metrics_length)

    def run_epoch(self) -> None:
        """An epoch, or what is left of the one under way."""
        chosen, now = self.settings.training, self.under_way
        order = np.random.default_rng([chosen.seed, self.epoch]).permutation(len(self.groups))
        batches = group_batches(self.groups, chosen.batch_size, order)
        began = time.monotonic() - now.seconds
        self.student.train()
        title, count = f"epoch {self.epoch + 1}", len(self.vectors)
        with (
            catch_interrupts() as interrupted,
            progress(title, count, self.shown, earlier=now.sentences) as done,
        ):
            for batch in islice(batches, now.batches, None):
                now.loss += self.learn(batch) * len(batch)
                now.batches += 1
                now.sentences += len(batch)
                now.seconds = time.monotonic() - began
                done(len(batch))
                stopping = interrupted()
                if stopping or time.monotonic() - self.saved_at > 60 * chosen.save_minutes:
                    self.save()
                if stopping:
                    raise Interrupted(self.folder.path, self.step)
        self.epoch += 1
        line: dict[str, Any] = {
            "epoch": self.epoch,
            "step": self.step,
            "loss": now.loss / now.sentences,
            "seconds": now.seconds,
        }
        if chosen.dev is not None:
            self.student.eval()
            report, _ = evaluate_similarity(self.student, self.data / chosen.dev)
            line["dev_spearman"] = report.spearman
        if line.get("dev_spearman", self.epoch) > self.best.get("dev_spearman", -1.0):
            self.best, self.best_weights = line, trained_weights(self.student)
        self.under_way = EpochProgress()
        self.metrics_length = self.folder.log(line)
        self.save()

    def save(self) -> None:
        """Writes a checkpoint."""
        state = {
            "epoch": self.epoch,
            "step": self.step,
            "under_way": asdict(self.under_way),
            "best": self.best,
            "sentences": len(self.vectors),
            "metrics_length": self.metrics_length,
        }
        tensors = state_tensors(self.student, self.optimizer, self.best_weights)
        save_checkpoint(self.folder.checkpoints, self.step, state, tensors)
        self.saved_at = time.monotonic()

    def learn(self, batch: list[int]) -> float:
        """One step; gives its loss."""
        chosen = self.settings.training
        for group in self.optimizer.param_groups:
            group["lr"] = chosen.learning_rate * learning_rate_factor(self.step, self.steps, chosen)
        # Dropout of a step hangs on the seed and its number alone, so that a run that was stopped
        # goes on as it would have.
        torch.manual_seed(1_000_003 * chosen.seed + self.step)
        target = torch.from_numpy(self.vectors[batch]).float() @ self.axes  # (batch, width)
        vectors: Tensor = self.student(self.table.batch([self.rows[at] for at in batch])).vector
        loss = distillation_loss(vectors, target, chosen.similarity)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss is {float(loss.detach())} at step {self.step}; try a lower rate: "
                "--set training.learning_rate=..."
            )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if chosen.clip:
            nn.utils.clip_grad_norm_(self.student.parameters(), chosen.clip)
        self.optimizer.step()
        self.step += 1
        return float(loss.detach())

    def finish(self) -> dict[str, Any]:
        """Saves the best student with what the card should say."""
        restore_weights(self.student, self.best_weights)
        self.student.notes |= {
            "trained": f"to give the vectors of {self.settings.teacher.model}",
            **self.notes,
            "epochs": str(self.best["epoch"]),
        }
        if "dev_spearman" in self.best:
            self.student.notes["dev Spearman"] = f"{self.best['dev_spearman']:.4f}"
        self.student.eval().save_pretrained(self.folder.best)
        self.folder.write(self.folder.results, json.dumps(self.best, indent=2) + "\n")
        shutil.rmtree(self.folder.checkpoints, ignore_errors=True)
        return self.best


def learning_rate_factor(step: int, steps: int, settings: DistillationLoopSettings) -> float:
    """Share of the learning rate: up in a straight line, then down to zero."""
    if step < settings.warm_up:
        return (step + 1) / settings.warm_up
    return max(0.0, (steps - step) / max(1, steps - settings.warm_up))

"""A distillation: its run, step by step, with evaluations and checkpoints."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from genpool.disk.row_cache import HalfRows
from genpool.distillation.corpus import Corpus, corpus_fingerprint, read_corpus
from genpool.distillation.lesson import (
    Targets,
    agreement_by_source,
    cut_batches,
    distillation_loss,
    group_batches,
    neighbour_order,
)
from genpool.distillation.settings import (
    DistillationLoopSettings,
    DistillationSettings,
    require_trainable,
)
from genpool.distillation.student import prepare_student
from genpool.distillation.teachers import teacher_vectors
from genpool.errors import DataError, TrainingError
from genpool.jobs.evaluate import evaluate_similarity
from genpool.model import SentenceEncoder
from genpool.progress import progress
from genpool.saving.weights_file import is_table
from genpool.training.loop import catch_interrupts
from genpool.training.run_folder import RunFolder
from genpool.training.state import (
    ResumableRun,
    SavedState,
    restore_weights,
    trainable_parameters,
    trained_weights,
)


@dataclass
class DistillationState(SavedState):
    """The state of a run: what has been done of the epoch (batches, their sentences, summed loss
    and seconds), and the metrics of the best one."""

    batches: int = 0
    sentences: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    best: dict[str, Any] = field(default_factory=dict)


class DistillationRun(ResumableRun[SentenceEncoder, DistillationState]):
    """A student in training; `distil` calls its parts.

    It learns `vectors` (sentences, dim) for the groups of the corpus, and is scored on those that
    it holds out, with `held_out_vectors`, besides the dev table.
    """

    def __init__(
        self,
        settings: DistillationSettings,
        data: Path,
        folder: RunFolder,
        corpus: Corpus,
        vectors: HalfRows,
        held_out_vectors: HalfRows,
        show_progress: bool,
    ) -> None:
        if len(vectors) < 2:
            raise DataError("the corpus has a single sentence; expected two or more", data)
        groups = corpus.groups
        self.settings, self.groups, self.vectors = settings, groups, vectors
        self.held_out, self.held_out_vectors = corpus.held_out, held_out_vectors
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
        began, training = time.monotonic(), self.settings.training
        loss = self._loss(batch)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss is {float(loss.detach())} at step {self.state.step + 1} (epoch "
                f"{self.state.epoch + 1}); the run stops. Try a lower rate: "
                "--set training.learning_rate=..."
            )
        factor = learning_rate_factor(self.state.step, self.total_steps, training)
        for group in self.optimizer.param_groups:
            group["lr"] = training.learning_rate * factor
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if training.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), training.clip)
        self.optimizer.step()
        state = self.state
        state.loss += float(loss.detach()) * len(batch)
        state.batches += 1
        state.sentences += len(batch)
        state.seconds += time.monotonic() - began
        state.step += 1

    def _loss(self, batch: list[int]) -> Tensor:
        training, student = self.settings.training, self.student
        # Dropout is decided by seed and step: nothing about it has to be saved.
        torch.manual_seed(1_000_003 * training.seed + self.state.step)
        self.model.train()
        target = self._targets(self.vectors[batch])  # (batch, dim)
        rows = [student.rows[sentence] for sentence in batch]
        vectors: Tensor = self.model(student.table.batch(rows)).vector  # (batch, dim)
        return distillation_loss(vectors, target, training.similarity, training.widths)

    def _targets(self, vectors: HalfRows) -> Tensor:
        """Returns vectors to learn (sentences, teacher dim) on the student's axes."""
        return torch.from_numpy(vectors).float() @ self.student.axes

    def evaluate(self) -> None:
        """Ends an epoch: scores the student on dev, logs a line of metrics, keeps the best."""
        state = self.state
        state.epoch += 1
        line: dict[str, Any] = {
            "epoch": state.epoch,
            "step": state.step,
            "loss": state.loss / state.sentences,
            "seconds": state.seconds,
        }
        if self.dev is not None:
            self.model.eval()
            report, _ = evaluate_similarity(self.model, self.dev)
            line["dev_spearman"] = report.spearman
        if self.held_out:
            self.model.eval()
            scores = agreement_by_source(self.model.encode, self.held_out, self.held_out_vectors)
            line["agreement"] = sum(scores.values()) / len(scores)
            line["worst_agreement"] = min(scores.values())
        if _score(line) > _score(state.best):
            state.best, self.best = line, trained_weights(self.model)
        state.batches, state.sentences, state.loss, state.seconds = 0, 0, 0.0, 0.0
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


def learning_rate_factor(step: int, steps: int, settings: DistillationLoopSettings) -> float:
    """Returns the factor of the learning rate: it rises linearly, then falls linearly to zero."""
    if step < settings.warm_up:
        return (step + 1) / settings.warm_up
    return max(0.0, (steps - step) / max(1, steps - settings.warm_up))


def distil(
    settings: DistillationSettings,
    data: str | Path,
    out: str | Path,
    resume: bool = False,
    cache: str | Path | None = None,
    show_progress: bool = True,
) -> dict[str, Any]:
    """Trains a student to return the vectors of teachers, and saves it in `out`/best.

    Args:
        settings: the settings of a recipe, as `read_distillation` returns them.
        data: folder below which the files of the corpus are.
        out: folder of the run, which is created. It may exist if it is empty or, with `resume`,
            holds the same run.
        resume: continue a run that stopped, from its newest checkpoint. Default: False.
        cache: folder of the teachers' vectors, which several runs can share.
            Default: None, for `out`/teacher.
        show_progress: print progress on standard error. Default: True.

    Returns:
        The metrics of the best epoch: "epoch", "step", "loss", "seconds" and, with a dev table,
        "dev_spearman"; with held-out sentences, "agreement" and "worst_agreement".

    Raises:
        ConfigError, DataError: settings or data that cannot be used.
        TrainingError: the folder is in use or holds another run, the run was trained on other data,
            or the loss is not finite.
        Interrupted: Ctrl-C or SIGTERM; the state is saved for `resume`.

    Example:
        >>> settings = read_distillation(recipe_text("embedded"))
        >>> best = distil(settings, "data", "runs/embedded")
        >>> student = SentenceEncoder.from_pretrained("runs/embedded/best")
    """
    require_trainable(settings)
    folder = RunFolder(out)
    folder.check(settings, resume)
    corpus = read_corpus(settings.corpus, Path(data), settings.training.seed)
    sentences = [sentence for group in corpus.groups for sentence in group]
    held_out = [sentence for group in corpus.held_out.values() for sentence in group]
    about = {"data": str(data), "sentences": len(sentences)}
    with folder.held(settings, resume, about):
        vector_folder = Path(cache) if cache is not None else folder.path / "teacher"
        vectors = [
            teacher_vectors(
                name, held_out + sentences, vector_folder, settings.teacher, show_progress
            )
            for name in settings.teacher.models
        ]  # of every teacher: (held-out and other sentences, dim)
        first = len(held_out)
        targets = Targets.fit([part[first:] for part in vectors], settings.teacher)
        run = DistillationRun(
            settings,
            Path(data),
            folder,
            corpus,
            targets.apply([part[first:] for part in vectors]),
            targets.apply([part[:first] for part in vectors]),
            show_progress,
        )
        if resume:
            run.resume()
        _run_epochs(run)
        return run.finish()


def _run_epochs(run: DistillationRun) -> None:
    """Steps, evaluates and saves until the epochs are over."""
    state, settings = run.state, run.settings.training
    with catch_interrupts() as interrupted:
        while state.epoch < settings.epochs:
            title, earlier = f"epoch {state.epoch + 1}", state.sentences
            with progress(title, len(run.vectors), run.shown, earlier=earlier) as done:
                for batch in islice(run.epoch_batches(), state.batches, None):
                    run.step(batch)
                    done(len(batch))
                    run.save_if_due(settings.save_minutes)
                    if interrupted():
                        run.interrupt()
            run.evaluate()
            run.save()

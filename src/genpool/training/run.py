"""A training run: one step, one evaluation, and its end."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.errors import TrainingError
from genpool.model import Classified, Classifier
from genpool.text import Batch
from genpool.training.batches import process_share
from genpool.training.finish import finish
from genpool.training.heads import heads_report, penalty_gradient_share, sample_rows
from genpool.training.losses import BatchShare, ExtraLoss, StepLoss, step_loss
from genpool.training.penalty import HeadPenalty, PenaltyMonitor, is_penalized, sleep_warning
from genpool.training.preparation import Prepared
from genpool.training.processes import min_over_processes, sum_over_processes
from genpool.training.resumable import ResumableRun
from genpool.training.run_folder import RunFolder
from genpool.training.schedule import Decision, Schedule
from genpool.training.scoring import probabilities
from genpool.training.settings import RunSettings
from genpool.training.state import (
    RunState,
    Sums,
    restore_weights,
    trainable_parameters,
    trained_weights,
)
from genpool.training.tracking import Tracker, peak_memory_mb

#: training rows that the error for a step names
MAX_NAMED_ROWS = 8


class Run(ResumableRun[Classifier, RunState]):
    """A classifier in training: its parts are called by `genpool.training.loop`."""

    def __init__(
        self,
        settings: RunSettings,
        prepared: Prepared,
        folder: RunFolder,
        accelerator: Any,
        show_progress: bool,
        extra_losses: Sequence[ExtraLoss] = (),
    ) -> None:
        self.settings, self.prepared, self.accelerator = settings, prepared, accelerator
        model = prepared.model.to(accelerator.device)
        rate = settings.training.learning_rate
        optimizer = torch.optim.Adam(trainable_parameters(model), lr=rate, fused=True)
        self.wrapped, optimizer = accelerator.prepare(model, optimizer)
        state = RunState(Schedule(rate), data=prepared.fingerprint())
        super().__init__(
            model, optimizer, state, folder, accelerator.is_main_process, show_progress
        )
        self.extra_losses = list(extra_losses)
        if is_penalized(settings.penalty):
            self.extra_losses.insert(0, HeadPenalty(settings.penalty))
        self.needs_weights = any(extra_loss.needs_weights for extra_loss in self.extra_losses)
        self.tracker = Tracker(folder.path, settings.training.tensorboard and self.main)

    def announce(self) -> None:
        """Prints what is about to be trained."""
        splits = {"train": self.prepared.train, "dev": self.prepared.dev, **self.prepared.tests}
        rows = ", ".join(f"{name} {len(split):,}" for name, split in splits.items())
        count = sum(parameter.numel() for parameter in trainable_parameters(self.model))
        lines = {"rows": rows, "trained parameters": f"{count:,}", **self.prepared.notes}
        if self.shown:
            self.say("\n".join(f"{name}: {text}" for name, text in lines.items()))

    # --- A step ----------------------------------------------------------------------------------

    def step(self, examples: NDArray[np.int64]) -> None:
        """Trains on one batch; of several processes, each computes its share."""
        began = time.monotonic()
        share = self._share(examples)
        batch, labels = self._tensors(share)
        output = self._forward(batch)
        loss = step_loss(self.model, output, labels, share, self.extra_losses)
        self._require_finite(loss.total, "the loss", examples)
        norm = self._backward(loss.total)
        self._require_finite(norm, "the gradient", examples)
        self._update()
        self._record(share, batch, labels, output, loss)
        seconds = time.monotonic() - began
        self.state.sums.seconds += seconds
        self.state.seconds += seconds

    def _share(self, examples: NDArray[np.int64]) -> BatchShare:
        processes = self.accelerator.num_processes
        rows = process_share(examples, self.accelerator.process_index, processes)
        count = len(rows)
        return BatchShare(rows if count else examples[:1], count, len(examples), processes)

    def _tensors(self, share: BatchShare) -> tuple[Batch, Tensor]:
        train, device = self.prepared.train, self.model.device
        labels = torch.from_numpy(train.labels[share.rows])  # (examples,)
        return train.batch(share.rows, self.prepared.table).to(device), labels.to(device)

    def _forward(self, batch: Batch) -> Classified:
        # Dropout is decided by seed, step and process: nothing about it has to be saved.
        source = (self.settings.training.seed, self.state.step, self.accelerator.process_index)
        torch.manual_seed(int(np.random.SeedSequence(source).generate_state(1)[0]))
        self.wrapped.train()
        with self.accelerator.autocast():
            output: Classified = self.wrapped(batch, weights=self.needs_weights)
        return output

    def _backward(self, loss: Tensor) -> Tensor:
        """Computes and clips the gradients; returns their norm before clipping."""
        self.optimizer.zero_grad()
        self.accelerator.backward(loss)
        clip = self.settings.training.clip
        limit = clip if clip > 0 else math.inf
        norm: Tensor = self.accelerator.clip_grad_norm_(trainable_parameters(self.model), limit)
        return norm

    def _update(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.state.schedule.learning_rate
        self.optimizer.step()

    def _record(
        self, share: BatchShare, batch: Batch, labels: Tensor, output: Classified, loss: StepLoss
    ) -> None:
        """Adds the step to the sums since the last evaluation."""
        state, sums = self.state, self.state.sums
        state.step, state.step_in_epoch = state.step + 1, state.step_in_epoch + 1
        penalized = [term for term in loss.terms if term.penalty is not None]
        if penalized:
            penalties = [term.penalty for term in penalized if term.penalty is not None]
            state.watch.update(penalties, share.factor(penalized[0]) / share.processes)
        if share.count:
            sums.loss += float(loss.entropy.detach())
            sums.correct += int((output.logits.argmax(dim=1) == labels).sum())
            sums.examples += share.count
            sums.tokens += int(batch.mask.sum())
            sums.computed += self._computed_positions(batch)

    def _computed_positions(self, batch: Batch) -> int:
        """Returns the token positions that the layers computed.

        Padding is among them only where a pooling needs the padded tensor or its weights are used.
        """
        if self.model.encoder.pooling.is_packed and not self.needs_weights:
            return int(batch.mask.sum())
        return batch.mask.numel()

    def _require_finite(self, value: Tensor, what: str, examples: NDArray[np.int64]) -> None:
        if bool(torch.isfinite(value)):
            return
        ids = ", ".join(self.prepared.train.ids[row] for row in examples[:MAX_NAMED_ROWS])
        dots = " ..." if len(examples) > MAX_NAMED_ROWS else ""
        best = self.folder.best
        kept = f"The best model so far is kept in {best}. " if best.is_dir() else ""
        raise TrainingError(
            f"{what} is {value.item()} at step {self.state.step + 1} (epoch {self.state.epoch + 1},"
            f" training rows {ids}{dots}); the run stops. {kept}"
            "Try a lower training.learning_rate or training.clip."
        )

    # --- An evaluation ---------------------------------------------------------------------------

    def evaluate(self) -> None:
        """Scores dev, logs a line of metrics, and acts as the schedule decides."""
        state, began = self.state, time.monotonic()
        accuracy, watch, heads = self._dev_accuracy(), self._gathered_monitor(), self._heads()
        state.seconds += time.monotonic() - began
        line = self._metrics(accuracy, watch, heads)
        decision = state.schedule.after(accuracy, self.settings.training)
        self._apply(decision)
        self.log(line)
        self._report(line, decision, watch)
        state.stopped = decision.stop
        state.sums, state.watch = Sums(), PenaltyMonitor()

    def _apply(self, decision: Decision) -> None:
        if decision.is_best:
            self.best = trained_weights(self.model)
            if self.main:
                self.model.save_pretrained(self.folder.best)
        elif decision.restore:
            restore_weights(self.model, self.best)

    def log(self, line: dict[str, Any]) -> None:
        super().log(line)
        if self.main:
            self.tracker.log(line)

    def _report(self, line: dict[str, Any], decision: Decision, watch: PenaltyMonitor) -> None:
        """Prints the evaluation, with a warning where a penalty has no effect."""
        if watch.asleep:
            warning = sleep_warning(self.settings.penalty, line["penalty_distance_mean"])
            self.say(f"warning: {warning}")
        if self.shown:
            mark = " (best)" if decision.is_best else ", halved" if decision.restore else ""
            self.say(
                f"step {line['step']}: train loss {line['train_loss']:.4f}, "
                f"dev accuracy {100 * line['dev_accuracy']:.2f} %{mark}"
            )

    def _dev_accuracy(self) -> float:
        """Returns the accuracy on dev; every process scores a share, and all get the same value."""
        dev, processes = self.prepared.dev, self.accelerator.num_processes
        rows = range(self.accelerator.process_index, len(dev), processes)
        batch_size = self.settings.training.batch_size
        scores = probabilities(self.model, dev, self.prepared.table, batch_size, rows)
        correct = (scores.argmax(axis=1) == dev.labels[rows.start :: rows.step]).sum()
        return self._total(float(correct)) / len(dev)

    def _heads(self) -> dict[str, float]:
        """Returns the metrics of `genpool.training.heads`; empty for a model with one head."""
        if not self.main or not self.model.encoder.pooling.multi_head:
            return {}
        prepared, seed = self.prepared, self.settings.training.seed
        dev = prepared.dev.batch(sample_rows(prepared.dev, seed), prepared.table)
        penalty = self.settings.penalty
        metrics = heads_report(self.model, dev, penalty.threshold, penalty.average).metrics()
        if is_penalized(penalty):
            rows = sample_rows(prepared.train, seed)
            batch = prepared.train.batch(rows, prepared.table)
            labels = torch.from_numpy(prepared.train.labels[rows])  # (examples,)
            share = penalty_gradient_share(self.model, batch, labels, self.extra_losses)
            metrics |= {} if share is None else {"penalty_gradient_share": share}
        return metrics

    def _gathered_monitor(self) -> PenaltyMonitor:
        """Returns the monitor of all processes together."""
        watch = self.state.watch
        return replace(
            watch,
            term=self._total(watch.term),
            active=self._total(watch.active),
            distance=self._total(watch.distance),
            smallest=min_over_processes(self.accelerator, watch.smallest),
        )

    def _metrics(
        self, accuracy: float, watch: PenaltyMonitor, heads: dict[str, float]
    ) -> dict[str, Any]:
        """Returns a line of metrics.jsonl."""
        state, sums = self.state, self.state.sums
        totals = {name: self._total(value) for name, value in asdict(sums).items()}
        return {
            "step": state.step,
            "epoch": state.epoch,
            "train_loss": totals["loss"] / totals["examples"],
            "train_accuracy": totals["correct"] / totals["examples"],
            "dev_accuracy": accuracy,
            "learning_rate": state.schedule.learning_rate,
            **watch.report(),
            **heads,
            "seconds": state.seconds,
            "tokens_per_second": totals["tokens"] / max(sums.seconds, 1e-9),
            "idle_positions": 1 - totals["tokens"] / max(totals["computed"], 1),
            "peak_memory_mb": peak_memory_mb(),
        }

    # --- The rest --------------------------------------------------------------------------------

    def finish(self, score_tests: bool) -> dict[str, Any]:
        """Scores the best model and writes the report; returns the scores by split."""
        self.tracker.close()
        results: dict[str, Any] = {}
        if self.main:
            self.model.save_pretrained(self.folder.last)
            restore_weights(self.model, self.best)
            results = finish(self.settings, self.prepared, self.folder, score_tests)
        self.accelerator.wait_for_everyone()
        return results

    def any_process(self, noticed: bool) -> bool:
        """Whether any process noticed it: they stop at the same step, or wait forever."""
        return noticed if self.accelerator.num_processes == 1 else self._total(float(noticed)) > 0

    def running_score(self) -> str:
        """Returns loss and accuracy since the last evaluation, for the progress bar."""
        sums = self.state.sums
        count = max(sums.examples, 1)
        return f"loss {sums.loss / count:.3f}, {100 * sums.correct / count:.1f} %"

    def _total(self, value: float) -> float:
        return sum_over_processes(self.accelerator, value)

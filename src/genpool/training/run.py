"""A training run: one step, one evaluation, and its end."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.errors import Interrupted, TrainingError
from genpool.model import Classified, Classifier
from genpool.text import Batch
from genpool.training.batches import count_epochs, count_steps, process_share
from genpool.training.contrastive import ContrastiveLoss
from genpool.training.finish import finish
from genpool.training.heads import heads_report, penalty_gradient_share, sample_rows
from genpool.training.losses import BatchShare, EncoderLoss, ExtraLoss, StepLoss, step_loss
from genpool.training.penalty import HeadPenalty, PenaltyMonitor, is_penalized, sleep_warning
from genpool.training.preparation import Prepared
from genpool.training.processes import min_over_processes, sum_over_processes
from genpool.training.report import ScoredSplit
from genpool.training.resumable import ResumableRun
from genpool.training.run_folder import RunFolder
from genpool.training.schedule import Decision, Schedule
from genpool.training.scoring import probabilities
from genpool.training.settings import RunSettings
from genpool.training.state import (
    RunState,
    Sums,
    parameter_groups,
    restore_weights,
    trainable_parameters,
    trained_weights,
)
from genpool.training.tracking import Tracker, peak_memory_mb

#: training rows that the error for a step names
MAX_NAMED_ROWS = 8
#: seconds between two writings of the best model; every checkpoint has its weights, too
BEST_MODEL_SECONDS = 10.0


class Run(ResumableRun[Classifier, RunState]):
    """A classifier in training: its parts are called by `genpool.training.loop`.

    Attributes:
        epochs: the passes over the training rows, if the run is not stopped earlier.
        steps: the steps of all of them.
        scored: the splits with their predictions, when the run is finished.
        is_partial: whether Ctrl-C ended it.
    """

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
        groups = parameter_groups(model, settings.training)
        optimizer = torch.optim.AdamW(groups, lr=rate, fused=True)
        self.wrapped, optimizer = accelerator.prepare(model, optimizer)
        state = RunState(Schedule(rate), data=prepared.fingerprint())
        super().__init__(
            model, optimizer, state, folder, accelerator.is_main_process, show_progress
        )
        self.objective = prepared.objective
        train = prepared.train
        self.epochs = count_epochs(train.lengths, settings.training)
        self.steps = self.epochs * count_steps(len(train), settings.training)
        self.scored: dict[str, ScoredSplit] = {}
        self.is_partial = False
        self.extra_losses = list(extra_losses)
        if is_penalized(settings.penalty):
            self.extra_losses.insert(0, HeadPenalty(settings.penalty))
        if model.encoder.encoder.has_extra_loss:
            self.extra_losses.append(EncoderLoss())
        self.contrastive = self._contrastive_loss()
        self.needs_weights = any(extra_loss.needs_weights for extra_loss in self.extra_losses)
        self.tracker = Tracker(folder.path, settings.training.tensorboard and self.main)
        self._best_is_written, self._best_written_at = True, -math.inf

    def _contrastive_loss(self) -> ContrastiveLoss | None:
        settings = self.settings.training
        if settings.contrastive_weight == 0 or not self.objective.has_classes:
            return None
        return ContrastiveLoss(settings.contrastive_weight, settings.contrastive_temperature)

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
        """Trains on one batch; of several processes, each computes its share, part by part."""
        began = time.monotonic()
        shares = self._shares(examples)
        self.optimizer.zero_grad()
        for part, share in enumerate(shares):
            # The processes average their gradients once a step, after the last part.
            waits = part < len(shares) - 1
            with self.accelerator.no_sync(self.wrapped) if waits else nullcontext():
                self._add_gradients(share, part, examples)
        norm = self._clip()
        self._require_finite(norm, "the gradient", examples)
        self._update()
        self.state.step += 1
        self.state.step_in_epoch += 1
        seconds = time.monotonic() - began
        self.state.sums.seconds += seconds
        self.state.seconds += seconds

    def _shares(self, examples: NDArray[np.int64]) -> list[BatchShare]:
        """Returns the parts of a batch that this process computes, one after the other."""
        processes = self.accelerator.num_processes
        rows = process_share(examples, self.accelerator.process_index, processes)
        if not len(rows):
            return [BatchShare(examples[:1], 0, len(examples), processes)]
        count = min(self.settings.training.accumulate, len(rows))
        return [
            BatchShare(part, len(part), len(examples), processes, count)
            for part in np.array_split(rows, count)
        ]

    def _add_gradients(self, share: BatchShare, part: int, examples: NDArray[np.int64]) -> None:
        batch, targets = self._tensors(share)
        output = self._forward(batch, part)
        loss = step_loss(self.model, output, targets, share, self.extra_losses)
        if self.contrastive is not None:
            labels = torch.from_numpy(self.prepared.train.labels[share.rows]).to(targets.device)
            loss = loss.with_term(self.contrastive(self.model, output, labels), share)
        self._require_finite(loss.total, "the loss", examples)
        self.accelerator.backward(loss.total)
        self._record(share, batch, output, loss, is_new_step=part == 0)

    def _tensors(self, share: BatchShare) -> tuple[Batch, Tensor]:
        train, device = self.prepared.train, self.model.device
        targets = self.objective.targets(train, share.rows)  # (examples,) or (examples, labels)
        return train.batch(share.rows, self.prepared.table).to(device), targets.to(device)

    def _forward(self, batch: Batch, part: int) -> Classified:
        # Dropout is decided by seed, step, process and part: nothing about it has to be saved.
        source: tuple[int, ...] = (self.settings.training.seed, self.state.step)
        source += (self.accelerator.process_index, *((part,) if part else ()))
        torch.manual_seed(int(np.random.SeedSequence(source).generate_state(1)[0]))
        self.wrapped.train()
        if self.model.encoder.encoder.has_extra_loss:
            self.model.encoder.encoder.set_epoch(self.state.epoch)
        with self.accelerator.autocast():
            output: Classified = self.wrapped(batch, weights=self.needs_weights)
        return output

    def _clip(self) -> Tensor:
        """Clips the gradients; returns their norm before that."""
        clip = self.settings.training.clip
        limit = clip if clip > 0 else math.inf
        norm: Tensor = self.accelerator.clip_grad_norm_(trainable_parameters(self.model), limit)
        return norm

    def _update(self) -> None:
        state = self.state
        rate = state.schedule.rate_at(state.step, self.steps, self.settings.training)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["rate"]
        self.optimizer.step()

    def _record(
        self,
        share: BatchShare,
        batch: Batch,
        output: Classified,
        loss: StepLoss,
        is_new_step: bool,
    ) -> None:
        """Adds a part of the step to the sums since the last evaluation."""
        state, sums = self.state, self.state.sums
        penalized = [term for term in loss.terms if term.penalty is not None]
        if penalized:
            penalties = [term.penalty for term in penalized if term.penalty is not None]
            weight = share.factor(penalized[0]) / share.processes
            state.watch.update(penalties, weight, is_new_step)
        if share.count:
            sums.loss += float(loss.entropy.detach())
            predicted = output.logits.argmax(dim=1).cpu().numpy()  # (examples,)
            sums.correct += int((predicted == self.prepared.train.labels[share.rows]).sum())
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
        self._write_best_now()
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
        scores, watch, heads = self._dev_metrics(), self._gathered_monitor(), self._heads()
        state.seconds += time.monotonic() - began
        line = self._metrics(scores, watch, heads)
        score = scores[self.objective.metric]
        error = self.objective.standard_error(score, len(self.prepared.dev))
        decision = state.schedule.after(score, self.settings.training, error)
        line["is_best"] = decision.is_best
        self._apply(decision)
        self.log(line)
        self._report(line, decision, watch)
        state.stopped = decision.stop
        state.sums, state.watch = Sums(), PenaltyMonitor()

    def _apply(self, decision: Decision) -> None:
        if decision.is_best:
            self.best = trained_weights(self.model)
            # With few rows, writing the model would take longer than training it.
            self._best_is_written = False
            if time.monotonic() - self._best_written_at >= BEST_MODEL_SECONDS:
                self._write_best_now()
        elif decision.restore:
            restore_weights(self.model, self.best)

    def _write_best_now(self) -> None:
        """Writes the best model if the folder does not have it; the model has its weights then."""
        if self._best_is_written:
            return
        restore_weights(self.model, self.best)
        if self.main:
            self.folder.save_model(self.folder.best, self.prepared.complete_model)
        self._best_is_written, self._best_written_at = True, time.monotonic()

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
            score = self.objective.format(line[self.objective.metric])
            self.say(
                f"step {line['step']}: train loss {line['train_loss']:.4f}, "
                f"dev {self.objective.title} {score}{mark}"
            )

    def _dev_metrics(self) -> dict[str, float]:
        """Returns the metrics of the dev set, the same in all processes."""
        prepared, batch_size = self.prepared, self.settings.training.batch_size
        process = (self.accelerator.process_index, self.accelerator.num_processes)

        def predict(rows: range) -> NDArray[np.float32]:
            return probabilities(self.model, prepared.dev, prepared.table, batch_size, rows)

        return self.objective.dev_metrics(prepared.dev, predict, process, self._total)

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
            targets = self.objective.targets(prepared.train, np.asarray(rows))
            share = penalty_gradient_share(self.model, batch, targets, self.extra_losses)
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
        self, scores: dict[str, float], watch: PenaltyMonitor, heads: dict[str, float]
    ) -> dict[str, Any]:
        """Returns a line of metrics.jsonl."""
        state, sums, settings = self.state, self.state.sums, self.settings.training
        totals = {name: self._total(value) for name, value in asdict(sums).items()}
        return {
            "step": state.step,
            "epoch": state.epoch,
            "train_loss": totals["loss"] / totals["examples"],
            "train_accuracy": totals["correct"] / totals["examples"],
            **scores,
            "learning_rate": state.schedule.rate_at(state.step - 1, self.steps, settings),
            **watch.report(),
            **heads,
            "seconds": state.seconds,
            "tokens_per_second": totals["tokens"] / max(sums.seconds, 1e-9),
            "idle_positions": 1 - totals["tokens"] / max(totals["computed"], 1),
            "peak_memory_mb": peak_memory_mb(),
        }

    # --- The rest --------------------------------------------------------------------------------

    def resume(self) -> None:
        super().resume()
        # A process that was killed may have left an older one.
        self._best_is_written = not self.folder.best.is_dir()

    def interrupt(self) -> NoReturn:
        self.save()
        self._write_best_now()  # not before: it changes the weights
        raise Interrupted(self.folder.path, self.state.step)

    def stop_early(self) -> None:
        """Ends the training with the best weights so far, and says so."""
        if self.state.sums.examples and not self.folder.metric_lines():
            self.evaluate()
        self.state.stopped = self.is_partial = True
        self.say(f"stopped at step {self.state.step}: the best model so far is kept")

    def finish(self, score_tests: bool) -> None:
        """Scores the best model and writes the report; `scored` has the splits."""
        self.tracker.close()
        if self.main:
            self.folder.save_model(self.folder.last, self.prepared.complete_model)
            restore_weights(self.model, self.best)
            self.scored = finish(self.settings, self.prepared, self.folder, score_tests)
        self.accelerator.wait_for_everyone()

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

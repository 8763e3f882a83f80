"""The training loop. `train` is the whole story; `Run` is its vocabulary."""

from __future__ import annotations

import math
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor
from torch.nn import functional

from genpool.errors import Interrupted, MissingExtraError, TrainingError
from genpool.model import Classified
from genpool.pooling import GeneralizedPooling
from genpool.progress import progress
from genpool.text import Batch
from genpool.training.batches import epoch_batches, process_share
from genpool.training.checkpoint import load_checkpoint, save_checkpoint
from genpool.training.finish import finish
from genpool.training.interrupt import catch_interrupts
from genpool.training.penalty import PenaltyMonitor, compute_penalties, needs_weights
from genpool.training.preparation import Prepared, prepare
from genpool.training.run_folder import RunFolder
from genpool.training.schedule import Schedule
from genpool.training.scoring import probabilities
from genpool.training.settings import RunSettings
from genpool.training.state import (
    RunState,
    Sums,
    load_tensors,
    restore_weights,
    state_tensors,
    trained_weights,
)
from genpool.training.tracking import Tracker, about_run, peak_memory_mb


def train(
    settings: RunSettings,
    data: str | Path | None,
    out: str | Path,
    resume: bool = False,
    show_progress: bool = True,
    score_tests: bool = True,
) -> dict[str, Any]:
    """Trains a model and leaves everything about it in the folder `out`.

    Gives the results: dev accuracy and that of every labelled test split (empty in all processes
    but the first, under torchrun). Raises `Interrupted` after Ctrl-C, with the state saved.
    """
    accelerator = _accelerator(settings)
    folder = RunFolder(out)
    if accelerator.is_main_process:
        folder.check(settings, resume)
    prepared = prepare(settings, data)
    if accelerator.is_main_process:  # not before: a run that cannot start leaves nothing behind
        folder.begin(settings, about_run(data, accelerator.num_processes, accelerator.device))
    accelerator.wait_for_everyone()
    run = Run(settings, prepared, folder, accelerator, show_progress)
    run.announce()
    if resume:
        run.resume()
    state, chosen = run.state, settings.training
    with catch_interrupts() as interrupted:
        while state.epoch < chosen.epochs and not state.stopped:
            batches = epoch_batches(
                prepared.train.lengths, chosen.batch_size, chosen.seed, state.epoch
            )
            earlier = sum(map(len, batches[: state.step_in_epoch]))
            title = f"epoch {state.epoch + 1}"
            with progress(title, len(prepared.train), run.shown, earlier=earlier) as done:
                for batch in batches[state.step_in_epoch :]:
                    run.step(batch)
                    done(len(batch), run.running_score())
                    ended = state.step_in_epoch == len(batches)
                    if ended:
                        state.epoch, state.step_in_epoch = state.epoch + 1, 0
                    if ended or (chosen.evaluate_every and state.step % chosen.evaluate_every == 0):
                        run.evaluate()
                        run.save()
                    elif time.monotonic() - run.saved_at > 60 * chosen.save_minutes:
                        run.save()
                    if run.anywhere(interrupted()):
                        run.save()
                        raise Interrupted(folder.path, state.step)
                    if state.stopped:
                        break
    return run.finish(score_tests)


class Run:
    """A model, its optimizer and where it is: one step, one evaluation, one checkpoint."""

    def __init__(
        self,
        settings: RunSettings,
        prepared: Prepared,
        folder: RunFolder,
        accelerator: Any,
        show_progress: bool,
    ) -> None:
        self.settings, self.prepared, self.folder = settings, prepared, folder
        self.accelerator = accelerator
        self.main: bool = accelerator.is_main_process
        self.shown = show_progress and self.main
        self.model = prepared.model.to(accelerator.device)
        optimizer = torch.optim.Adam(
            [each for each in self.model.parameters() if each.requires_grad],
            lr=settings.training.learning_rate,
            fused=True,
        )
        self.wrapped, self.optimizer = accelerator.prepare(self.model, optimizer)
        self.state = RunState(Schedule(settings.training.learning_rate), prepared.fingerprint())
        self.best = trained_weights(self.model)
        self.tracker = Tracker(folder.path, settings.training.tensorboard and self.main)
        self.saved_at = time.monotonic()

    def say(self, text: str) -> None:
        if self.main:
            Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)

    def announce(self) -> None:
        sizes = {"train": self.prepared.train, "dev": self.prepared.dev, **self.prepared.tests}
        rows = ", ".join(f"{name} {len(split):,}" for name, split in sizes.items())
        count = sum(each.numel() for each in self.model.parameters() if each.requires_grad)
        lines = {"rows": rows, "trained parameters": f"{count:,}", **self.prepared.notes}
        if self.shown:
            self.say("\n".join(f"{name}: {text}" for name, text in lines.items()))

    def resume(self) -> None:
        """Goes back to the newest whole checkpoint; with none, starts from the beginning."""
        checkpoint = load_checkpoint(self.folder.checkpoints)
        if checkpoint is None:
            self.say(f"{self.folder.path}: no checkpoint yet, starting from the beginning")
        else:
            for warning in checkpoint.warnings:
                self.say(f"warning: {warning}")
            saved = RunState.from_dict({"data": self.state.data, **checkpoint.state})
            if saved.data != self.state.data:
                raise TrainingError(
                    f"{self.folder.path}: the data are not those that this run was trained on so "
                    f"far ({self.folder.about} says where they were). Give the same --data, or "
                    "another folder: --out"
                )
            # The loop holds on to the state: it is filled, not replaced.
            self.state.__dict__.update(saved.__dict__)
            self.best = load_tensors(checkpoint.tensors, self.model, self.optimizer)
            self.best = {name: each.to(self.model.device) for name, each in self.best.items()}
            self.say(f"{self.folder.path}: continuing after step {self.state.step}")
        if self.main:
            self.folder.cut_metrics(self.state.metrics_length)

    def step(self, examples: NDArray[np.int64]) -> None:
        """One batch: loss, gradient, clip, update. Several processes each take their share."""
        began = time.monotonic()
        state, chosen = self.state, self.settings.training
        process, processes = self.accelerator.process_index, self.accelerator.num_processes
        mine = process_share(examples, process, processes)
        count = len(mine)
        if not count:  # all have to meet at the gradients: this process brings one that is zero
            mine = examples[:1]
        batch = self.prepared.train.batch(mine, self.prepared.table).to(self.model.device)
        labels = torch.from_numpy(self.prepared.train.labels[mine]).to(self.model.device)
        # Dropout is decided by seed, step and process: nothing about it has to be saved.
        seed = np.random.SeedSequence((chosen.seed, state.step, process)).generate_state(1)
        torch.manual_seed(int(seed[0]))
        self.wrapped.train()
        with self.accelerator.autocast():
            output: Classified = self.wrapped(batch, weights=needs_weights(self.settings.penalty))
        penalties = compute_penalties(self.settings.penalty, self.model, output.pooled)
        entropy = functional.cross_entropy(output.logits.float(), labels, reduction="sum")
        entropy = entropy * min(count, 1)
        # Gradients are averaged over the processes; this makes it the mean over the whole batch.
        scale = processes / len(examples)
        term = sum((each.term for each in penalties), entropy.new_zeros(()))
        alike = self.settings.penalty.name == "parameter"  # in all processes
        share = 1.0 if alike else processes * count / len(examples)
        loss = scale * entropy + share * term
        self._require_finite(loss, "the loss", examples)
        self.optimizer.zero_grad()
        self.accelerator.backward(loss)
        trained = [each for each in self.model.parameters() if each.requires_grad]
        limit = chosen.clip if chosen.clip > 0 else math.inf
        norm = self.accelerator.clip_grad_norm_(trained, limit)
        self._require_finite(norm, "the gradient", examples)
        for group in self.optimizer.param_groups:
            group["lr"] = state.schedule.learning_rate
        self.optimizer.step()
        state.step, state.step_in_epoch = state.step + 1, state.step_in_epoch + 1
        state.watch.see(penalties, share / processes)
        sums = state.sums
        if count:
            sums.loss += float(entropy.detach())
            sums.correct += int((output.logits.argmax(dim=1) == labels).sum())
            sums.examples += count
            sums.tokens += int(batch.mask.sum())
            sums.computed += self._computed_positions(batch)
        sums.seconds += time.monotonic() - began
        state.seconds += time.monotonic() - began

    def evaluate(self) -> None:
        """Scores dev, logs a line, and does what the schedule says."""
        state, began = self.state, time.monotonic()
        accuracy, watch = self._dev_accuracy(), self._watched()
        state.seconds += time.monotonic() - began
        line = self._metrics(accuracy, watch)
        decision = state.schedule.after(accuracy, self.settings.training)
        if decision.is_best:
            self.best = trained_weights(self.model)
            if self.main:
                self.model.save_pretrained(self.folder.best)
        elif decision.restore:
            restore_weights(self.model, self.best)
        if self.main:
            state.metrics_length = self.folder.log(line)
            self.tracker.log(line)
        if watch.asleep:
            self.say(
                f"warning: the {self.settings.penalty.name} penalty was asleep: no head pair was "
                f"nearer than its threshold {self.settings.penalty.threshold:g} in any step "
                f"(mean distance {line['penalty_distance_mean']:.3g}). It changes nothing."
            )
        if self.shown:
            mark = " (best)" if decision.is_best else ", halved" if decision.restore else ""
            self.say(
                f"step {state.step}: train loss {line['train_loss']:.4f}, "
                f"dev accuracy {100 * accuracy:.2f} %{mark}"
            )
        state.stopped = decision.stop
        state.sums, state.watch = Sums(), PenaltyMonitor()

    def save(self) -> None:
        if self.main:
            tensors = state_tensors(self.model, self.optimizer, self.best)
            save_checkpoint(self.folder.checkpoints, self.state.step, asdict(self.state), tensors)
        self.saved_at = time.monotonic()

    def finish(self, score_tests: bool) -> dict[str, Any]:
        self.tracker.close()
        results: dict[str, Any] = {}
        if self.main:
            self.model.save_pretrained(self.folder.last)
            restore_weights(self.model, self.best)
            results = finish(self.settings, self.prepared, self.folder, score_tests)
        self.accelerator.wait_for_everyone()
        return results

    def anywhere(self, noticed: bool) -> bool:
        """Whether any process noticed it: they stop at the same step, or wait for ever."""
        return noticed if self.accelerator.num_processes == 1 else self._total(float(noticed)) > 0

    def running_score(self) -> str:
        sums = self.state.sums
        count = max(sums.examples, 1)
        return f"loss {sums.loss / count:.3f}, {100 * sums.correct / count:.1f} %"

    def _computed_positions(self, batch: Batch) -> int:
        """Token positions that the layers work on: padding is among them only where a pooling
        cannot do with packed rows, or must give its weights."""
        packed = isinstance(self.model.encoder.pooling, GeneralizedPooling)
        if packed and not needs_weights(self.settings.penalty):
            return int(batch.mask.sum())
        return batch.mask.numel()

    def _dev_accuracy(self) -> float:
        """Every process scores its share of dev; all get the same answer."""
        dev, processes = self.prepared.dev, self.accelerator.num_processes
        mine = range(self.accelerator.process_index, len(dev), processes)
        found = probabilities(
            self.model, dev, self.prepared.table, self.settings.training.batch_size, mine
        )
        right = (found.argmax(axis=1) == dev.labels[mine.start :: mine.step]).sum()
        return self._total(float(right)) / len(dev)

    def _watched(self) -> PenaltyMonitor:
        """What the watch has seen in all processes together."""
        own = self.state.watch
        smallest = torch.tensor([own.smallest], dtype=torch.float64, device=self.model.device)
        return replace(
            own,
            term=self._total(own.term),
            active=self._total(own.active),
            distance=self._total(own.distance),
            smallest=float(self.accelerator.gather(smallest).min()),
        )

    def _metrics(self, accuracy: float, watch: PenaltyMonitor) -> dict[str, Any]:
        """A line of metrics.jsonl."""
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
            "seconds": state.seconds,
            "tokens_per_second": totals["tokens"] / max(sums.seconds, 1e-9),
            "idle_positions": 1 - totals["tokens"] / max(totals["computed"], 1),
            "peak_memory_mb": peak_memory_mb(),
        }

    def _total(self, value: float) -> float:
        """The sum of a number over all processes."""
        local = torch.tensor(value, dtype=torch.float64, device=self.model.device)
        summed: Tensor = self.accelerator.reduce(local, reduction="sum")
        return float(summed)

    def _require_finite(self, value: Tensor, what: str, examples: NDArray[np.int64]) -> None:
        if bool(torch.isfinite(value)):
            return
        ids = ", ".join(self.prepared.train.ids[number] for number in examples[:8])
        best = self.folder.best
        kept = f"The best model so far is kept in {best}. " if best.is_dir() else ""
        raise TrainingError(
            f"{what} is {value.item()} at step {self.state.step + 1} (epoch {self.state.epoch + 1},"
            f" training rows {ids}{' ...' if len(examples) > 8 else ''}); the run stops. {kept}"
            "Try a lower training.learning_rate or training.clip."
        )


def destroy_process_group() -> None:
    """Takes leave of the other processes of torchrun, after the last run."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _accelerator(settings: RunSettings) -> Any:
    try:
        from accelerate import Accelerator
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error
    names = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}
    precision = settings.training.precision
    # Only when told to use the CPU does accelerate join several processes there.
    kind = torch.accelerator.current_accelerator(check_available=True)
    shared = int(os.environ.get("WORLD_SIZE", "1")) > 1
    cpu = kind is None or (shared and kind.type == "mps")
    try:
        return Accelerator(mixed_precision=names[precision], cpu=cpu)
    except ValueError as error:  # it keeps the first choice for as long as the process lives
        raise TrainingError(
            f"training.precision is {precision!r}, but a run of another precision has been in this "
            "Python process; start a new one."
        ) from error

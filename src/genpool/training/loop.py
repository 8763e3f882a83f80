"""The training loop: the steps and evaluations of a run, from its first epoch to its report."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from genpool.errors import Interrupted, TrainingError, require_extra
from genpool.model import Classified, Classifier
from genpool.progress import progress
from genpool.training import heads
from genpool.training.dataset import count_epochs, epoch_batches
from genpool.training.objective import ContrastiveLoss, EncoderLoss, ExtraLoss, LossTerm
from genpool.training.preparation import Prepared
from genpool.training.report import ScoredSplit, finish, peak_memory_mb, probabilities
from genpool.training.run_folder import RunFolder
from genpool.training.settings import RunSettings
from genpool.training.state import (
    STOP_SIGNALS,
    SUMS,
    ResumableRun,
    RunState,
    catch_interrupts,
    parameter_groups,
    rate_factors,
    restore_weights,
    trainable_parameters,
    trained_weights,
)

#: training rows that the error for a step names
MAX_NAMED_ROWS = 8
#: seconds between two writings of the best model; every checkpoint has its weights, too
BEST_MODEL_SECONDS = 10.0


class Run(ResumableRun[Classifier, RunState]):
    """A classifier in training; `is_partial` if Ctrl-C ended it."""

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
        training, model = settings.training, prepared.model.to(accelerator.device)
        rate, main = training.learning_rate, accelerator.is_main_process
        optimizer = torch.optim.AdamW(parameter_groups(model, training), lr=rate, fused=True)
        self.wrapped, optimizer = accelerator.prepare(model, optimizer)
        state = RunState(rate, data=prepared.fingerprint())
        super().__init__(model, optimizer, state, folder, main, show_progress)
        self.objective, self.parameters = prepared.objective, trainable_parameters(model)
        self.epochs = count_epochs(prepared.train.lengths, training)
        steps = self.epochs * math.ceil(len(prepared.train) / training.batch_size)
        self.rate_factors = rate_factors(steps, training)
        self.scored: dict[str, ScoredSplit] = {}
        self.is_partial = False
        self.extra_losses = list(extra_losses)
        if settings.penalty.is_enabled:
            self.extra_losses.insert(0, heads.HeadPenalty(settings.penalty))
        if model.encoder.encoder.has_extra_loss:
            self.extra_losses.append(EncoderLoss())
        if training.contrastive_weight and self.objective.has_classes:
            weight, temperature = training.contrastive_weight, training.contrastive_temperature
            self.extra_losses.append(ContrastiveLoss(weight, temperature))
        self.needs_weights = any(extra_loss.needs_weights for extra_loss in self.extra_losses)
        self._board: Any = None
        if training.tensorboard and main:
            with require_extra("TensorBoard", "tensorboard"):
                from torch.utils.tensorboard import SummaryWriter
            self._board = SummaryWriter(str(folder.path / "tensorboard"))
        self._best_is_written, self._best_written_at = False, -math.inf

    def announce(self) -> None:
        """Prints what is about to be trained."""
        splits = {"train": self.prepared.train, "dev": self.prepared.dev, **self.prepared.tests}
        rows = ", ".join(f"{name} {len(split):,}" for name, split in splits.items())
        count = sum(parameter.numel() for parameter in self.parameters)
        lines = {"rows": rows, "trained parameters": f"{count:,}", **self.prepared.notes}
        if self.shown:
            self.say("\n".join(f"{name}: {text}" for name, text in lines.items()))

    def run_epochs(self, keep_partial: bool) -> None:
        """Steps, evaluates and saves until the epochs are over or the schedule stops the run."""
        state, settings, lengths = self.state, self.settings.training, self.prepared.train.lengths
        # Where Ctrl-C returns a model, the program goes on; SIGTERM is meant to end it.
        signals = (signal.SIGINT,) if keep_partial else STOP_SIGNALS
        with catch_interrupts(signals) as arrived:
            while state.epoch < self.epochs and not state.stopped:
                batches = epoch_batches(lengths, settings, state.epoch)
                earlier = sum(map(len, batches[: state.step_in_epoch]))
                title = f"epoch {state.epoch + 1}"
                with progress(title, len(lengths), self.shown, earlier=earlier) as done:
                    for batch in batches[state.step_in_epoch :]:
                        self.step(batch)
                        done(len(batch), self.running_score())
                        ended = state.step_in_epoch == len(batches)
                        if ended:
                            state.epoch, state.step_in_epoch = state.epoch + 1, 0
                        every = settings.evaluate_every
                        if ended or (every and state.step_in_epoch % every == 0):
                            self.evaluate()
                            self.save()
                        elif time.monotonic() - self.saved_at > 60 * settings.save_minutes:
                            self.save()
                        if self.any_process(bool(arrived)):
                            if not keep_partial:
                                self.interrupt()
                            self.stop_early()
                        if state.stopped:
                            break

    # --- A step ----------------------------------------------------------------------------------

    def step(self, examples: NDArray[np.int64]) -> None:
        """Trains on one batch; of several processes, each computes its share, part by part."""
        began, state, training = time.monotonic(), self.state, self.settings.training
        processes = self.accelerator.num_processes
        # In turns: a batch is sorted by length, and every process should get long and short rows.
        rows = examples[self.accelerator.process_index :: processes]
        parts = np.array_split(rows, min(training.accumulate, len(rows))) if len(rows) else []
        shares = [
            BatchShare(part, len(part), len(examples), processes, len(parts)) for part in parts
        ]
        shares = shares or [BatchShare(examples[:1], 0, len(examples), processes, 1)]
        self.optimizer.zero_grad()
        for part, share in enumerate(shares):
            # The processes average their gradients once a step, after the last part.
            waits = part < len(shares) - 1
            with self.accelerator.no_sync(self.wrapped) if waits else nullcontext():
                self._add_gradients(share, part, examples)
        norm = self.accelerator.clip_grad_norm_(self.parameters, training.clip or math.inf)
        self._require_finite(norm, "the gradient", examples)
        rate = state.learning_rate * self.rate_factors[state.step]
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["rate"]
        self.optimizer.step()
        state.step += 1
        state.step_in_epoch += 1
        seconds = time.monotonic() - began
        state.sums["seconds"] += seconds
        state.seconds += seconds

    def _add_gradients(self, share: BatchShare, part: int, examples: NDArray[np.int64]) -> None:
        train, device, encoder = self.prepared.train, self.accelerator.device, self.model.encoder
        batch = train.batch(share.rows, self.prepared.table).to(device)
        targets = torch.from_numpy(train.targets[share.rows]).to(device)  # (examples, ...)
        # Dropout is decided by seed, step, process and part: nothing about it has to be saved.
        source: tuple[int, ...] = (self.settings.training.seed, self.state.step)
        source += (self.accelerator.process_index, *((part,) if part else ()))
        torch.manual_seed(int(np.random.SeedSequence(source).generate_state(1)[0]))
        self.wrapped.train()
        if encoder.encoder.has_extra_loss:
            encoder.encoder.set_epoch(self.state.epoch)
        with self.accelerator.autocast():
            output: Classified = self.wrapped(batch, weights=self.needs_weights)
        loss, entropy, terms = step_loss(self.model, output, targets, share, self.extra_losses)
        self._require_finite(loss, "the loss", examples)
        self.accelerator.backward(loss)
        state, sums = self.state, self.state.sums
        if penalized := [term for term in terms if term.penalty is not None]:
            weight = share.factor(penalized[0]) / share.processes
            closest = heads.add_penalties(sums, penalized, weight)
            sums["penalty_steps"] += part == 0
            state.closest = min(state.closest, closest)
        if share.count:
            predicted = output.logits.argmax(dim=1).cpu().numpy()  # (examples,)
            sums["loss"] += float(entropy.detach())
            sums["correct"] += int((predicted == train.labels[share.rows]).sum())
            sums["examples"] += share.count
            sums["tokens"] += int(batch.mask.sum())
            # Padding is computed only where a pooling needs the padded tensor or weights are used.
            is_packed = encoder.pooling.is_packed and not self.needs_weights
            sums["computed"] += int(batch.mask.sum()) if is_packed else batch.mask.numel()

    def _require_finite(self, value: Tensor, what: str, examples: NDArray[np.int64]) -> None:
        if bool(torch.isfinite(value)):
            return
        ids = ", ".join(self.prepared.train.ids[row] for row in examples[:MAX_NAMED_ROWS])
        dots = " ..." if len(examples) > MAX_NAMED_ROWS else ""
        self._write_best()
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
        scores, distances = self._dev_metrics(), {}
        if self.main and self.model.encoder.pooling.heads > 1:
            distances = heads.run_metrics(self.settings, self.prepared, self.extra_losses)
        state.seconds += time.monotonic() - began
        line = self._metrics(scores, distances)
        score = scores[self.objective.metric]
        error = self.objective.standard_error(score, len(self.prepared.dev))
        decision = state.after(score, self.settings.training, error)
        line["is_best"] = decision == "best"
        self.log(line)
        if decision == "best":
            self.best = trained_weights(self.model)
            # With few rows, writing the model would take longer than training it.
            self._best_is_written = False
            if time.monotonic() - self._best_written_at >= BEST_MODEL_SECONDS:
                self._write_best()
        elif decision == "restore":
            restore_weights(self.model, self.best)
        if line.get("penalty_active") == 0:
            distance = line["penalty_distance_mean"]
            self.say(f"warning: {heads.inactive_warning(self.settings.penalty, distance)}")
        if self.shown:
            mark = {"best": " (best)", "restore": ", halved", "worse": ""}[decision]
            self.say(
                f"step {line['step']}: train loss {line['train_loss']:.4f}, "
                f"dev {self.objective.title} {self.objective.format(score)}{mark}"
            )
        state.sums, state.closest = dict.fromkeys(SUMS, 0.0), math.inf

    def _write_best(self) -> None:
        """Writes the best model if the folder does not have it; the model has its weights then."""
        if self._best_is_written or not self.state.lines:
            return
        restore_weights(self.model, self.best)
        if self.main and self.folder.is_saved:
            self.prepared.complete_model().save_pretrained(self.folder.best)
        self._best_is_written, self._best_written_at = True, time.monotonic()

    def log(self, line: dict[str, Any]) -> None:
        super().log(line)
        for name, value in line.items() if self._board is not None else ():
            if isinstance(value, int | float):
                self._board.add_scalar(name, value, line["step"])

    def _dev_metrics(self) -> dict[str, float]:
        """Returns the metrics of the dev set, of which every process scores a share."""
        prepared, accelerator = self.prepared, self.accelerator
        dev, processes = prepared.dev, accelerator.num_processes
        rows = range(accelerator.process_index, len(dev), processes)
        batch_size = self.settings.training.batch_size
        scores = probabilities(self.model, dev, prepared.table, batch_size, rows)
        if processes > 1:
            padded = torch.zeros(len(dev), scores.shape[1], device=accelerator.device)
            padded[rows.start :: rows.step] = torch.from_numpy(scores).to(padded)
            scores = accelerator.reduce(padded, reduction="sum").cpu().numpy()
        return self.objective.dev_metrics(dev, scores)  # scores: (rows, labels)

    def _metrics(self, scores: dict[str, float], distances: dict[str, float]) -> dict[str, Any]:
        """Returns a line of metrics.jsonl, about all processes together."""
        state, sums = self.state, self.state.sums
        totals = dict(zip(sums, self._total(list(sums.values())), strict=True))
        closest = torch.tensor([state.closest], dtype=torch.float64, device=self.accelerator.device)
        closest = self.accelerator.gather(closest).min()
        return {
            "step": state.step,
            "epoch": state.epoch,
            "train_loss": totals["loss"] / totals["examples"],
            "train_accuracy": totals["correct"] / totals["examples"],
            **scores,
            "learning_rate": state.learning_rate * self.rate_factors[state.step - 1],
            **heads.penalty_metrics(totals, sums["penalty_steps"], float(closest)),
            **distances,
            "seconds": state.seconds,
            "tokens_per_second": totals["tokens"] / max(sums["seconds"], 1e-9),
            "idle_positions": 1 - totals["tokens"] / max(totals["computed"], 1),
            "peak_memory_mb": peak_memory_mb(),
        }

    # --- The rest --------------------------------------------------------------------------------

    def interrupt(self) -> NoReturn:
        self.save()
        self._write_best()  # not before: it changes the weights
        raise Interrupted(self.folder.path, self.state.step)

    def stop_early(self) -> None:
        """Ends the training with the best weights so far, and says so."""
        if self.state.sums["examples"] and not self.state.lines:
            self.evaluate()
        self.state.stopped = self.is_partial = True
        self.say(f"stopped at step {self.state.step}: the best model so far is kept")

    def finish(self, score_tests: bool) -> None:
        """Scores the best model and writes the report; `scored` has the splits."""
        if self._board is not None:
            self._board.close()
        if self.main:
            if self.folder.is_saved:
                self.prepared.complete_model().save_pretrained(self.folder.last)
            restore_weights(self.model, self.best)
            self.scored = finish(self.settings, self.prepared, self.folder, score_tests)
        self.accelerator.wait_for_everyone()

    def any_process(self, noticed: bool) -> bool:
        """Whether any process noticed it: they stop at the same step, or wait forever."""
        several = self.accelerator.num_processes > 1
        return self._total([float(noticed)])[0] > 0 if several else noticed

    def running_score(self) -> str:
        """Returns loss and accuracy since the last evaluation, for the progress bar."""
        sums = self.state.sums
        count = max(sums["examples"], 1)
        return f"loss {sums['loss'] / count:.3f}, {100 * sums['correct'] / count:.1f} %"

    def _total(self, values: list[float]) -> list[float]:
        """Returns the sums of numbers over all processes."""
        local = torch.tensor(values, dtype=torch.float64, device=self.accelerator.device)
        totals: list[float] = self.accelerator.reduce(local, reduction="sum").tolist()
        return totals


@dataclass(frozen=True)
class BatchShare:
    """The part of a batch that one of several processes computes at a time.

    It is never empty: all processes have to meet at the gradients, so a process without rows
    computes one and counts none.
    """

    rows: NDArray[np.int64]  # of the training set
    count: int  # of the rows that count, 0 or all
    batch_size: int  # of the whole batch
    processes: int  # that share it
    parts: int = 1  # that this process computes one after the other, whose gradients are added

    def factor(self, term: LossTerm) -> float:
        """The factor of a term, so that the sum over parts and the average over processes is the
        mean over the whole batch."""
        is_mean = term.per_example
        return self.processes * self.count / self.batch_size if is_mean else 1.0 / self.parts


def step_loss(
    model: Classifier,
    output: Classified,
    targets: Tensor,
    share: BatchShare,
    extra_losses: Sequence[ExtraLoss],
) -> tuple[Tensor, Tensor, list[LossTerm]]:
    """Returns the loss whose gradient, averaged over the processes, is that of the whole batch.

    With it come the cross-entropy, summed over the examples that count, and the unscaled terms.
    """
    logits = output.logits.float()  # (examples, labels)
    losses = functional.cross_entropy(logits, targets, reduction="none")  # (examples,)
    entropy = losses.sum() * min(share.count, 1)  # ()
    terms = [term for extra in extra_losses for term in extra(model, output, losses, targets)]
    added = sum((share.factor(term) * term.value for term in terms), entropy.new_zeros(()))
    return share.processes / share.batch_size * entropy + added, entropy, terms

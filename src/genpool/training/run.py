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
from torch import Tensor, nn

from genpool.errors import Interrupted, TrainingError, require_extra
from genpool.model import Classified, Classifier
from genpool.training.dataset import count_epochs
from genpool.training.heads import (
    HeadPenalty,
    PenaltyMonitor,
    heads_report,
    inactive_warning,
    penalty_gradient_share,
    sample_rows,
)
from genpool.training.objective import (
    BatchShare,
    ContrastiveLoss,
    EncoderLoss,
    ExtraLoss,
    step_loss,
)
from genpool.training.preparation import Prepared
from genpool.training.report import ScoredSplit, finish, peak_memory_mb, probabilities
from genpool.training.run_folder import RunFolder
from genpool.training.settings import RunSettings, TrainingSettings
from genpool.training.state import (
    ResumableRun,
    RunState,
    Schedule,
    Sums,
    restore_weights,
    trainable_parameters,
    trained_weights,
)

#: training rows that the error for a step names
MAX_NAMED_ROWS = 8
#: seconds between two writings of the best model; every checkpoint has its weights, too
BEST_MODEL_SECONDS = 10.0


class Run(ResumableRun[Classifier, RunState]):
    """A classifier in training: its parts are called by `genpool.training.loop`.

    When the run is finished, `scored` has the splits with their predictions, and `is_partial` says
    whether Ctrl-C ended it.
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
        training, train = settings.training, prepared.train
        model, rate = prepared.model.to(accelerator.device), training.learning_rate
        optimizer = torch.optim.AdamW(parameter_groups(model, training), lr=rate, fused=True)
        self.wrapped, optimizer = accelerator.prepare(model, optimizer)
        state = RunState(Schedule(rate), data=prepared.fingerprint())
        super().__init__(
            model, optimizer, state, folder, accelerator.is_main_process, show_progress
        )
        self.objective = prepared.objective
        self.epochs = count_epochs(train.lengths, training)
        self.steps = self.epochs * math.ceil(len(train) / training.batch_size)
        self.scored: dict[str, ScoredSplit] = {}
        self.is_partial = False
        self.extra_losses = list(extra_losses)
        if settings.penalty.is_enabled:
            self.extra_losses.insert(0, HeadPenalty(settings.penalty))
        if model.encoder.encoder.has_extra_loss:
            self.extra_losses.append(EncoderLoss())
        if training.contrastive_weight and self.objective.has_classes:
            weight, temperature = training.contrastive_weight, training.contrastive_temperature
            self.extra_losses.append(ContrastiveLoss(weight, temperature))
        self.needs_weights = any(extra_loss.needs_weights for extra_loss in self.extra_losses)
        self._board: Any = None
        if training.tensorboard and self.main:
            with require_extra("TensorBoard", "tensorboard"):
                from torch.utils.tensorboard import SummaryWriter
            self._board = SummaryWriter(str(folder.path / "tensorboard"))
        self._best_is_written, self._best_written_at = True, -math.inf

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
        self._update(examples)
        self.state.step += 1
        self.state.step_in_epoch += 1
        seconds = time.monotonic() - began
        self.state.sums.seconds += seconds
        self.state.seconds += seconds

    def _shares(self, examples: NDArray[np.int64]) -> list[BatchShare]:
        """Returns the parts of a batch that this process computes, one after the other."""
        processes = self.accelerator.num_processes
        # In turns: a batch is sorted by length, and every process should get long and short rows.
        rows = examples[self.accelerator.process_index :: processes]
        if not len(rows):
            return [BatchShare(examples[:1], 0, len(examples), processes)]
        count = min(self.settings.training.accumulate, len(rows))
        return [
            BatchShare(part, len(part), len(examples), processes, count)
            for part in np.array_split(rows, count)
        ]

    def _add_gradients(self, share: BatchShare, part: int, examples: NDArray[np.int64]) -> None:
        train, device = self.prepared.train, self.model.device
        batch = train.batch(share.rows, self.prepared.table).to(device)
        targets = self.objective.targets(train, share.rows).to(device)  # (examples, ...)
        # Dropout is decided by seed, step, process and part: nothing about it has to be saved.
        source: tuple[int, ...] = (self.settings.training.seed, self.state.step)
        source += (self.accelerator.process_index, *((part,) if part else ()))
        torch.manual_seed(int(np.random.SeedSequence(source).generate_state(1)[0]))
        self.wrapped.train()
        if self.model.encoder.encoder.has_extra_loss:
            self.model.encoder.encoder.set_epoch(self.state.epoch)
        with self.accelerator.autocast():
            output: Classified = self.wrapped(batch, weights=self.needs_weights)
        loss, entropy, terms = step_loss(self.model, output, targets, share, self.extra_losses)
        self._require_finite(loss, "the loss", examples)
        self.accelerator.backward(loss)
        penalized = [term for term in terms if term.penalty is not None]
        if penalized:
            penalties = [term.penalty for term in penalized if term.penalty is not None]
            weight = share.factor(penalized[0]) / share.processes
            self.state.monitor.update(penalties, weight, is_new_step=part == 0)
        if share.count:
            self._count(share, batch.mask, output, float(entropy.detach()))

    def _update(self, examples: NDArray[np.int64]) -> None:
        """Clips the gradients and changes the weights."""
        limit = self.settings.training.clip or math.inf
        norm = self.accelerator.clip_grad_norm_(trainable_parameters(self.model), limit)
        self._require_finite(norm, "the gradient", examples)
        state = self.state
        rate = state.schedule.rate_at(state.step, self.steps, self.settings.training)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["rate"]
        self.optimizer.step()

    def _count(self, share: BatchShare, mask: Tensor, output: Classified, entropy: float) -> None:
        """Adds a part of the step to the sums since the last evaluation."""
        sums = self.state.sums
        predicted = output.logits.argmax(dim=1).cpu().numpy()  # (examples,)
        sums.loss += entropy
        sums.correct += int((predicted == self.prepared.train.labels[share.rows]).sum())
        sums.examples += share.count
        sums.tokens += int(mask.sum())
        # Padding is computed only where a pooling needs the padded tensor or weights are used.
        is_packed = self.model.encoder.pooling.is_packed and not self.needs_weights
        sums.computed += int(mask.sum()) if is_packed else mask.numel()

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
        scores, heads = self._dev_metrics(), self._heads()
        state.seconds += time.monotonic() - began
        line = self._metrics(scores, heads)
        score = scores[self.objective.metric]
        error = self.objective.standard_error(score, len(self.prepared.dev))
        decision = state.schedule.after(score, self.settings.training, error)
        line["is_best"] = decision.is_best
        if decision.is_best:
            self.best = trained_weights(self.model)
            # With few rows, writing the model would take longer than training it.
            self._best_is_written = False
            if time.monotonic() - self._best_written_at >= BEST_MODEL_SECONDS:
                self._write_best_now()
        elif decision.restore:
            restore_weights(self.model, self.best)
        self.log(line)
        if line.get("penalty_active") == 0:
            distance = line["penalty_distance_mean"]
            self.say(f"warning: {inactive_warning(self.settings.penalty, distance)}")
        if self.shown:
            mark = " (best)" if decision.is_best else ", halved" if decision.restore else ""
            self.say(
                f"step {line['step']}: train loss {line['train_loss']:.4f}, "
                f"dev {self.objective.title} {self.objective.format(score)}{mark}"
            )
        state.stopped = decision.stop
        state.sums, state.monitor = Sums(), PenaltyMonitor()

    def _write_best_now(self) -> None:
        """Writes the best model if the folder does not have it; the model has its weights then."""
        if self._best_is_written:
            return
        restore_weights(self.model, self.best)
        if self.main and self.folder.is_saved:
            self.prepared.complete_model().save_pretrained(self.folder.best)
        self._best_is_written, self._best_written_at = True, time.monotonic()

    def log(self, line: dict[str, Any]) -> None:
        super().log(line)
        if self._board is not None:
            for name, value in line.items():
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

    def _heads(self) -> dict[str, float]:
        """Returns the metrics of `genpool.training.heads`; empty for a model with one head."""
        if not self.main or self.model.encoder.pooling.heads < 2:
            return {}
        prepared, seed = self.prepared, self.settings.training.seed
        dev = prepared.dev.batch(sample_rows(prepared.dev, seed), prepared.table)
        penalty = self.settings.penalty
        metrics = heads_report(self.model, dev, penalty.threshold, penalty.average).metrics()
        if penalty.is_enabled:
            rows = sample_rows(prepared.train, seed)
            batch = prepared.train.batch(rows, prepared.table)
            targets = self.objective.targets(prepared.train, np.asarray(rows))
            share = penalty_gradient_share(self.model, batch, targets, self.extra_losses)
            metrics |= {} if share is None else {"penalty_gradient_share": share}
        return metrics

    def _metrics(self, scores: dict[str, float], heads: dict[str, float]) -> dict[str, Any]:
        """Returns a line of metrics.jsonl, about all processes together."""
        state, sums, settings = self.state, self.state.sums, self.settings.training
        totals = {name: self._total(value) for name, value in asdict(sums).items()}
        names = ("term", "active", "distance")
        of_all: dict[str, Any] = {name: self._total(getattr(state.monitor, name)) for name in names}
        smallest = torch.tensor([state.monitor.smallest], dtype=torch.float64)
        gathered = self.accelerator.gather(smallest.to(self.accelerator.device))
        of_all["smallest"] = float(gathered.min())
        monitor = replace(state.monitor, **of_all)
        return {
            "step": state.step,
            "epoch": state.epoch,
            "train_loss": totals["loss"] / totals["examples"],
            "train_accuracy": totals["correct"] / totals["examples"],
            **scores,
            "learning_rate": state.schedule.rate_at(state.step - 1, self.steps, settings),
            **monitor.report(),
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
        return noticed if self.accelerator.num_processes == 1 else self._total(float(noticed)) > 0

    def running_score(self) -> str:
        """Returns loss and accuracy since the last evaluation, for the progress bar."""
        sums = self.state.sums
        count = max(sums.examples, 1)
        return f"loss {sums.loss / count:.3f}, {100 * sums.correct / count:.1f} %"

    def _total(self, value: float) -> float:
        """Returns the sum of a number over all processes."""
        local = torch.tensor(value, dtype=torch.float64, device=self.accelerator.device)
        return float(self.accelerator.reduce(local, reduction="sum"))


def parameter_groups(model: Classifier, settings: TrainingSettings) -> list[dict[str, Any]]:
    """Returns the trained parameters with a factor of the learning rate, for the optimizer.

    The word table has no weight decay: a word that does not occur in a batch would shrink.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    words = model.encoder.embedding.words
    encoder = {id(parameter) for parameter in model.encoder.parameters()}
    for parameter in trainable_parameters(model):
        rate = settings.encoder_rate if id(parameter) in encoder else 1.0
        decay = 0.0 if parameter is words else settings.weight_decay
        groups.setdefault((rate, decay), []).append(parameter)
    return [
        {"params": parameters, "rate": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]

"""A distillation: the student and its run, step by step."""

from __future__ import annotations

import json
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.disk.atomic import write_text_file
from genpool.disk.row_cache import HalfRows
from genpool.distillation import teachers
from genpool.distillation.corpus import Corpus, read_corpus
from genpool.distillation.settings import DistillationSettings
from genpool.errors import ConfigError, DataError, TrainingError
from genpool.jobs.tables import evaluate_similarity
from genpool.model import SentenceEncoder
from genpool.progress import progress
from genpool.saving.weights_file import TABLES
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.training import state as run_state
from genpool.training.run_folder import RunFolder
from genpool.training.settings import frozen_random_table
from genpool.training.start_model import build_encoder

#: sentences from which the axes of an earlier student are computed
ALIGNED_SENTENCES = 20_000
#: dimensions that decide which sentences are close: the first ones say most
COMPARED_DIMENSIONS = 64
#: sentences that are compared with all centres together
COMPARED_ROWS = 8192


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
        resume: continue a run that stopped, from its newest checkpoint.
        cache: folder of the teachers' vectors, which several runs can share.
            Default: None, for `out`/teacher.
        show_progress: print progress on standard error.

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
    is_new = settings.training.start is None
    if is_new and (problems := frozen_random_table(settings.embedding, settings.vectors)):
        raise ConfigError(problems)
    folder = RunFolder(out)
    folder.check(settings, resume)
    corpus = read_corpus(settings.corpus, Path(data), settings.training.seed)
    sentences, held_out = list(chain(*corpus.groups)), list(chain(*corpus.held_out.values()))
    if len(sentences) < 2:
        raise DataError("the corpus has a single sentence; expected two or more", data)
    with folder.held(settings, resume, {"data": str(data), "sentences": len(sentences)}):
        place = Path(cache) if cache is not None else folder.path / "teacher"
        options = held_out + sentences, place, settings.teacher, show_progress
        models = settings.teacher.models
        vectors = [teachers.teacher_vectors(name, *options) for name in models]
        targets = teachers.combined_targets(vectors, settings.teacher, len(held_out))
        run = DistillationRun(settings, Path(data), folder, corpus, targets, show_progress)
        if resume:
            run.resume()
        run.run_epochs()
        return run.finish()


@dataclass
class DistillationState(run_state.SavedState):
    """The state of a run: what has been done of the epoch, and the metrics of the best one."""

    batches: int = 0
    sentences: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    best: dict[str, Any] = field(default_factory=dict)


class DistillationRun(run_state.ResumableRun[SentenceEncoder, DistillationState]):
    """A student in training. Its `targets` (sentences, dim) are first those of the sentences that
    the corpus holds out, on which it is scored besides the dev table, then those of its groups."""

    def __init__(
        self,
        settings: DistillationSettings,
        data: Path,
        folder: RunFolder,
        corpus: Corpus,
        targets: HalfRows,
        show_progress: bool,
    ) -> None:
        self.settings, training = settings, settings.training
        sentences = list(chain(*corpus.groups))
        first = len(targets) - len(sentences)
        self.held_out, self.held_out_targets = corpus.held_out, targets[:first]
        self.targets = targets[first:]
        model, words, self.axes = prepare_student(settings, sentences, self.targets)
        self.table = model.text.table(spell_known=model.settings.embedding.hidden_words > 0)
        self.rows = [self.table.row(sentence, model.text.sentence_ends) for sentence in words]
        if training.freeze_words:
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(not name.endswith(TABLES))
        weights = run_state.trainable_parameters(model)
        optimizer = torch.optim.Adam(weights, lr=training.learning_rate, fused=True)
        self.dev = None if training.dev is None else data / training.dev
        fingerprint = zlib.crc32(json.dumps(corpus.groups).encode())
        if self.dev is not None and self.dev.is_file():
            fingerprint = zlib.crc32(self.dev.read_bytes(), fingerprint)
        state = DistillationState(data=fingerprint)
        super().__init__(model, optimizer, state, folder, show_progress=show_progress)
        # Neighbours are found among single sentences.
        is_grouped = training.neighbours == 1
        self.sizes = [len(group) for group in corpus.groups] if is_grouped else [1] * len(sentences)
        batches = list(group_batches(self.sizes, training.batch_size, range(len(self.sizes))))
        self.total_steps = len(batches) * training.epochs

    def run_epochs(self) -> None:
        """Steps, evaluates and saves until the epochs are over."""
        state, settings = self.state, self.settings.training
        with run_state.catch_interrupts() as interrupted:
            while state.epoch < settings.epochs:
                title, earlier = f"epoch {state.epoch + 1}", state.sentences
                with progress(title, len(self.rows), self.shown, earlier=earlier) as done:
                    for batch in islice(self.epoch_batches(), state.batches, None):
                        self.step(batch)
                        done(len(batch))
                        if time.monotonic() - self.saved_at > 60 * settings.save_minutes:
                            self.save()
                        if interrupted:
                            self.interrupt()
                self.evaluate()
                self.save()

    def epoch_batches(self) -> Iterator[list[int]]:
        """Yields the batches of the current epoch, in an order that seed and epoch decide."""
        training = self.settings.training
        random = np.random.default_rng([training.seed, self.state.epoch])
        if training.neighbours == 1:
            order = random.permutation(len(self.sizes))
        else:
            targets = torch.from_numpy(self.targets).float() @ self.axes  # (sentences, dim)
            order = neighbour_order(targets.numpy(), training.neighbours, random)
        return group_batches(self.sizes, training.batch_size, order.tolist())

    def step(self, batch: list[int]) -> None:
        """Trains on one batch of sentences."""
        began, training, state = time.monotonic(), self.settings.training, self.state
        # Dropout is decided by seed and step: nothing about it has to be saved.
        torch.manual_seed(1_000_003 * training.seed + state.step)
        self.model.train()
        rows = [self.rows[sentence] for sentence in batch]
        vectors: Tensor = self.model(self.table.batch(rows)).vector  # (batch, dim)
        targets = torch.from_numpy(self.targets[batch]).float() @ self.axes  # (batch, dim)
        loss = teachers.distillation_loss(vectors, targets, training.similarity, training.widths)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss is {float(loss.detach())} at step {state.step + 1} (epoch "
                f"{state.epoch + 1}); the run stops. Try a lower rate: "
                "--set training.learning_rate=..."
            )
        factor = learning_rate_factor(state.step, self.total_steps, training.warm_up)
        for group in self.optimizer.param_groups:
            group["lr"] = training.learning_rate * factor
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if training.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), training.clip)
        self.optimizer.step()
        state.loss += float(loss.detach()) * len(batch)
        state.sentences += len(batch)
        state.seconds += time.monotonic() - began
        state.batches, state.step = state.batches + 1, state.step + 1

    def evaluate(self) -> None:
        """Ends an epoch: scores the student on dev, logs a line of metrics, keeps the best."""
        state = self.state
        state.epoch += 1
        line: dict[str, Any] = {"epoch": state.epoch, "step": state.step}
        line |= {"loss": state.loss / state.sentences, "seconds": state.seconds}
        self.model.eval()
        if self.dev is not None:
            line["dev_spearman"] = evaluate_similarity(self.model, self.dev)[0].spearman
        held_out = self.held_out, self.held_out_targets
        if scores := teachers.agreement_by_source(self.model.encode, *held_out):
            line["agreement"] = sum(scores.values()) / len(scores)
            line["worst_agreement"] = min(scores.values())
        if not state.best or _score(line) > _score(state.best):
            state.best, self.best = line, run_state.trained_weights(self.model)
        state.batches, state.sentences, state.loss, state.seconds = 0, 0, 0.0, 0.0
        self.log(line)

    def finish(self) -> dict[str, Any]:
        """Saves the best student with the notes of its card; returns the metrics of its epoch."""
        best, model = self.state.best, self.model.eval()
        run_state.restore_weights(model, self.best)
        model.notes["epochs"] = str(best["epoch"])
        if "dev_spearman" in best:
            model.notes["dev Spearman"] = f"{best['dev_spearman']:.4f}"
        model.save_pretrained(self.folder.best)
        write_text_file(self.folder.results, json.dumps(best, indent=2) + "\n")
        shutil.rmtree(self.folder.checkpoints, ignore_errors=True)
        return best


def _score(line: dict[str, Any]) -> float:
    """Returns what decides which epoch is kept: the dev scores; without any, the last is."""
    scores = [line[name] for name in ("dev_spearman", "agreement") if name in line]
    return float(sum(scores) / len(scores)) if scores else float(line["epoch"])


def learning_rate_factor(step: int, steps: int, rising: int) -> float:
    """Returns the factor of the learning rate: it rises linearly, then falls linearly to zero."""
    return min((step + 1) / rising, (steps - step) / max(1, steps - rising))


def group_batches(sizes: Sequence[int], size: int, order: Iterable[int]) -> Iterator[list[int]]:
    """Yields batches of sentence positions: groups of these `sizes`, in this order, until there are
    `size` sentences or more; a single sentence, which has no similarities, is no batch."""
    starts = np.cumsum([0, *sizes]).tolist()
    batch: list[int] = []
    for group in order:
        batch += range(starts[group], starts[group + 1])
        if len(batch) >= size:
            yield batch
            batch = []
    if len(batch) > 1:
        yield batch


def neighbour_order(
    targets: NDArray[np.float32], neighbours: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Returns an order of targets (sentences, dim) in which those next to each other are close.

    A student that only compares unrelated sentences learns little about which of two close ones is
    closer. So every sentence goes to the nearest of some that are drawn at random; the sentences of
    one of them, `neighbours` at most, follow each other, and such runs are in random order.
    """
    vectors = targets[:, :COMPARED_DIMENSIONS]
    centres = random.permutation(len(vectors))[: max(1, len(vectors) // neighbours)]
    chunks = np.split(vectors, range(COMPARED_ROWS, len(vectors), COMPARED_ROWS))
    nearest = np.concatenate([(chunk @ vectors[centres].T).argmax(axis=1) for chunk in chunks])
    shuffled = random.permutation(len(vectors))
    by_centre = shuffled[np.argsort(nearest[shuffled], kind="stable")]  # (sentences,)
    ends = np.flatnonzero(np.diff(nearest[by_centre])) + 1  # where the next centre begins
    runs: list[NDArray[np.int64]] = []
    for sentences in np.split(by_centre, ends):
        runs += np.split(sentences, range(neighbours, len(sentences), neighbours))
    return np.concatenate([runs[at] for at in np.argsort(random.permutation(len(runs)))])


def prepare_student(
    settings: DistillationSettings, sentences: Sequence[str], targets: HalfRows
) -> tuple[SentenceEncoder, list[list[str]], Tensor]:
    """Returns a student, new or the one that `training.start` names; the words of every sentence;
    and the axes (teacher dim, student dim) by which targets (sentences, teacher dim) are turned."""
    start, text = settings.training.start, settings.text
    names = " and ".join(settings.teacher.models)
    notes = {"trained": f"to return the vectors of {names}", "sentences": f"{len(sentences):,}"}
    if start is None:
        # The student's pipeline needs the vocabulary; until then, this one splits alike.
        parts = WordTokenizer(text.rules, text.folding), Vocabulary.build({}), Characters("")
        words = TextPipeline(*parts, max_length=text.max_length).words_batch(sentences)
        model = build_encoder(settings, Counter(chain(*words)), notes)
    else:
        model = SentenceEncoder.from_pretrained(start)
        words = model.text.words_batch(sentences)
        earlier = model.notes.get("sentences", "?")
        notes["started from"] = f"an earlier student ({earlier} sentences)"
    model.notes |= notes
    if model.output_dim > (teacher_dim := targets.shape[1]):
        raise ConfigError(
            f"the student's vectors have {model.output_dim} dimensions, the teacher's "
            f"{teacher_dim}; expected no more than that: --set projection.dim={teacher_dim}"
        )
    if start is None:
        return model, words, teachers.leading_directions(targets, model.output_dim)
    sample = np.random.default_rng(0).permutation(len(sentences))[:ALIGNED_SENTENCES]
    learned = model.encode([sentences[row] for row in sample], convert_to_tensor=True)
    axes = teachers.aligned_directions(torch.from_numpy(targets[sample]), learned)
    if settings.training.axes == "leading" and model.projection is not None:
        axes = teachers.turn_to_leading_axes(model.projection, axes, targets)
    return model, words, axes

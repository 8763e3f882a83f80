"""The distillation loop: the sequence of steps, evaluations and checkpoints of a run."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from genpool.distillation.corpus import read_corpus
from genpool.distillation.run import DistillationRun, Lesson
from genpool.distillation.settings import DistillationSettings, require_trainable
from genpool.distillation.targets import Targets
from genpool.distillation.teacher import teacher_vectors
from genpool.progress import progress
from genpool.training.loop import catch_interrupts
from genpool.training.run_folder import RunFolder


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
        lesson = Lesson(
            corpus.groups,
            targets.apply([part[first:] for part in vectors]),
            corpus.held_out,
            targets.apply([part[:first] for part in vectors]),
        )
        run = DistillationRun(settings, Path(data), folder, lesson, show_progress)
        if resume:
            run.resume()
        _run_epochs(run)
        return run.finish()


def _run_epochs(run: DistillationRun) -> None:
    """Steps, evaluates and saves until the epochs are over."""
    state, settings = run.state, run.settings.training
    with catch_interrupts() as interrupted:
        while state.epoch < settings.epochs:
            title, earlier = f"epoch {state.epoch + 1}", state.under_way.sentences
            with progress(title, len(run.vectors), run.shown, earlier=earlier) as done:
                for batch in islice(run.epoch_batches(), state.under_way.batches, None):
                    run.step(batch)
                    done(len(batch))
                    run.save_if_due(settings.save_minutes)
                    if interrupted():
                        run.interrupt()
            run.evaluate()
            run.save()

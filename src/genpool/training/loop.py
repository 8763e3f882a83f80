"""The training loop: the sequence of steps, evaluations and checkpoints of a `Run`."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from genpool.data.reader import Reader
from genpool.errors import Interrupted, Stopped
from genpool.model import SentenceEncoder
from genpool.progress import progress
from genpool.text.tree_cache import TreeCache
from genpool.training.batches import epoch_batches
from genpool.training.finish import scores_by_split
from genpool.training.interrupt import STOP_SIGNALS, catch_interrupts
from genpool.training.losses import ExtraLoss
from genpool.training.preparation import prepare
from genpool.training.processes import make_accelerator, report_lost_process
from genpool.training.run import Run
from genpool.training.run_folder import RunFolder
from genpool.training.settings import RunSettings
from genpool.training.start_model import start_settings
from genpool.training.tracking import about_run


def train(
    settings: RunSettings,
    data: str | Path | None,
    out: str | Path,
    resume: bool = False,
    show_progress: bool = True,
    score_tests: bool = True,
    extra_losses: Sequence[ExtraLoss] = (),
) -> dict[str, Any]:
    """Trains a model and writes everything about the run into a folder.

    Args:
        settings: the settings of a recipe, as `read_settings` returns them.
        data: folder or file of the data, or a name on the hub; None for a reader that generates
            its examples.
        out: folder of the run, which is created. It may exist if it is empty or, with `resume`,
            holds the same run.
        resume: continue a run that stopped, from its newest checkpoint. Default: False.
        show_progress: print progress on standard error. Default: True.
        score_tests: score the test splits at the end. Default: True; False for one of several runs
            of which the best is chosen on dev.
        extra_losses: further terms of the loss, besides the penalty of the settings. Default: none.

    Returns:
        The scores of dev and of every labelled test split, by name; empty in all processes but the
        first, under torchrun.

    Raises:
        ConfigError, DataError: settings or data that cannot be used; nothing is written.
        TrainingError: the folder is in use or holds another run, the loss is not finite, or
            another process of the run ended.
        Interrupted: Ctrl-C or SIGTERM; the state is saved for `resume`.

    Example:
        >>> settings = read_settings(recipe_text("rules"), ["training.epochs=2"])
        >>> results = train(settings, None, "runs/rules")
        >>> results["dev"]["accuracy"]
    """
    run = train_model(
        settings, data, RunFolder(out), resume, show_progress, score_tests, extra_losses
    )
    return scores_by_split(run.scored)


def train_model(
    settings: RunSettings,
    data: str | Path | Reader | None,
    folder: RunFolder,
    resume: bool = False,
    show_progress: bool = True,
    score_tests: bool = True,
    extra_losses: Sequence[ExtraLoss] = (),
    start: SentenceEncoder | None = None,
    keep_partial: bool = False,
) -> Run:
    """Trains a model as `train` does and returns the finished run, which has the best weights.

    Args:
        settings: as in `train`.
        data: as in `train`, or a reader.
        folder: the folder of the run.
        resume: as in `train`. Default: False.
        show_progress: as in `train`. Default: True.
        score_tests: as in `train`. Default: True.
        extra_losses: as in `train`. Default: none.
        start: the encoder to start from. None (default): that of the settings.
        keep_partial: on Ctrl-C finish with the best weights so far, instead of raising
            `Interrupted`. Default: False.
    """
    accelerator = make_accelerator(settings.training.precision)
    main: bool = accelerator.is_main_process
    settings, start = start_settings(settings, start)
    if main:
        folder.check(settings, resume)
    parsed = TreeCache()
    parsed.load(folder.trees)
    try:
        prepared = prepare(settings, data, start, parsed)
    except KeyboardInterrupt:
        raise Stopped("stopped while the data was read; nothing was written") from None
    place = data.place if isinstance(data, Reader) else data
    about = about_run(place, accelerator.num_processes, accelerator.device)
    # Not before the data is read: a run that cannot start leaves nothing behind.
    hold = folder.held(settings, resume, about) if main else nullcontext()
    with hold, report_lost_process(accelerator):
        accelerator.wait_for_everyone()
        if main:
            parsed.save(folder.trees)
        run = Run(settings, prepared, folder, accelerator, show_progress, extra_losses)
        run.announce()
        if resume:
            run.resume()
        try:
            _run_epochs(run, keep_partial)
            run.finish(score_tests)
        except KeyboardInterrupt:  # while the finished model is scored; its state is saved
            raise Interrupted(folder.path, run.state.step) from None
        return run


def _run_epochs(run: Run, keep_partial: bool) -> None:
    """Steps, evaluates and saves until the epochs are over or the schedule stops the run."""
    state, settings, examples = run.state, run.settings.training, run.prepared.train
    # Where Ctrl-C returns a model, the program goes on; SIGTERM is meant to end it.
    signals = (signal.SIGINT,) if keep_partial else STOP_SIGNALS
    with catch_interrupts(signals) as interrupted:
        while state.epoch < run.epochs and not state.stopped:
            batches = epoch_batches(examples.lengths, settings, state.epoch)
            earlier = sum(map(len, batches[: state.step_in_epoch]))
            title = f"epoch {state.epoch + 1}"
            with progress(title, len(examples), run.shown, earlier=earlier) as done:
                for batch in batches[state.step_in_epoch :]:
                    run.step(batch)
                    done(len(batch), run.running_score())
                    ended = state.step_in_epoch == len(batches)
                    if ended:
                        state.epoch, state.step_in_epoch = state.epoch + 1, 0
                    every = settings.evaluate_every
                    if ended or (every and state.step_in_epoch % every == 0):
                        run.evaluate()
                        run.save()
                    else:
                        run.save_if_due(settings.save_minutes)
                    if run.any_process(interrupted()):
                        if not keep_partial:
                            run.interrupt()
                        run.stop_early()
                    if state.stopped:
                        break

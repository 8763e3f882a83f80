"""The training loop: the sequence of steps, evaluations and checkpoints of a `Run`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from genpool.data.reader import Reader
from genpool.errors import Interrupted, Stopped, TrainingError, require_extra
from genpool.model import SentenceEncoder
from genpool.progress import progress
from genpool.training.dataset import epoch_batches
from genpool.training.objective import ExtraLoss
from genpool.training.preparation import prepare
from genpool.training.report import about_run, scores_by_split
from genpool.training.run import Run
from genpool.training.run_folder import RunFolder
from genpool.training.settings import RunSettings
from genpool.training.start_model import start_settings

#: our names of precisions, and accelerate's
PRECISIONS = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}
#: what ends a run that can be continued
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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

    The data may be a reader, too. `start` is the encoder to start from in place of that of the
    settings; with `keep_partial`, Ctrl-C finishes with the best weights so far instead of raising
    `Interrupted`.
    """
    accelerator = make_accelerator(settings.training.precision)
    main: bool = accelerator.is_main_process
    settings, start = start_settings(settings, start)
    if main:
        folder.check(settings, resume)
    try:
        prepared = prepare(settings, data, start)
    except KeyboardInterrupt:
        raise Stopped("stopped while the data was read; nothing was written") from None
    place = data.place if isinstance(data, Reader) else data
    about = about_run(place, accelerator.num_processes, accelerator.device)
    # Not before the data is read: a run that cannot start leaves nothing behind.
    hold = folder.held(settings, resume, about) if main else nullcontext()
    with hold, report_lost_process(accelerator):
        accelerator.wait_for_everyone()
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


@contextmanager
def catch_interrupts(
    signals: Sequence[signal.Signals] = STOP_SIGNALS,
) -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether one of the signals has arrived.

    The second signal is handled as before, so that a second Ctrl-C ends the program at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may set handlers
        return
    arrived = False
    previous = {number: signal.getsignal(number) for number in signals}

    def notice(number: int, frame: FrameType | None) -> None:
        nonlocal arrived
        arrived = True
        signal.signal(number, previous[signal.Signals(number)] or signal.SIG_DFL)

    for number in previous:
        signal.signal(number, notice)
    try:
        yield lambda: arrived
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler or signal.SIG_DFL)


# --- Several processes under torchrun, or one ----------------------------------------------------


def make_accelerator(precision: str) -> Any:
    """Returns accelerate's `Accelerator` of this process, which torchrun may have started."""
    with require_extra("training", "train"):
        from accelerate import Accelerator
    # accelerate joins several processes on the CPU only if it is asked for the CPU.
    kind = torch.accelerator.current_accelerator(check_available=True)
    shared = int(os.environ.get("WORLD_SIZE", "1")) > 1
    cpu = kind is None or (shared and kind.type == "mps")
    try:
        return Accelerator(mixed_precision=PRECISIONS[precision], cpu=cpu)
    except ValueError as error:  # its state is shared by all accelerators of a Python process
        raise TrainingError(
            f"training.precision is {precision!r}, but this Python process has trained in another "
            "precision before; start a new one."
        ) from error


@contextmanager
def report_lost_process(accelerator: Any) -> Iterator[None]:
    """Raises TrainingError if another process ended, without which this one cannot continue."""
    try:
        yield
    except RuntimeError as error:
        # gloo raises bare RuntimeError, whose text begins with its source file.
        is_lost = isinstance(error, torch.distributed.DistError) or "gloo" in str(error)
        if accelerator.num_processes == 1 or not is_lost:
            raise
        raise TrainingError(
            f"another of the {accelerator.num_processes} processes of this run ended (was it "
            "killed, or out of memory?), and this one cannot continue alone. The last checkpoint "
            "is intact: continue with the same command and --resume."
        ) from error


def end_process_group() -> None:
    """Ends this process, if it is one of several under torchrun; called when all is done.

    The interpreter is not finalized. DistributedDataParallel keeps gloo's threads alive after the
    process group is destroyed; one that still holds a tensor then aborts the process, now and then,
    and torchrun reports a finished run as failed.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return
    torch.distributed.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)

"""Where training starts: `train` for files, and `TextClassifier.fit` for examples in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from genpool.data.reader import Example, Reader, Record
from genpool.disk.files import markdown_table
from genpool.errors import InputError, Interrupted, Stopped, unknown_name
from genpool.evaluation import AccuracyReport
from genpool.evaluation.similarity import ScoreReport
from genpool.model import Classifier, PairClassifier, SentenceEncoder, TextClassifier
from genpool.recipes import recipe_names, recipe_text
from genpool.text.validation import label_names, read_labels, read_pairs, read_scores, read_texts
from genpool.training.loop import Run
from genpool.training.objective import ExtraLoss
from genpool.training.preparation import prepare
from genpool.training.report import about_run, scores_by_split
from genpool.training.run_folder import RunFolder
from genpool.training.settings import SCRATCH, RunSettings, read_settings
from genpool.training.start_model import start_settings
from genpool.training.state import make_accelerator, report_lost_process

Task = Literal["label", "score"]
Start = str | Path | SentenceEncoder | Classifier
#: the recipe of each kind of classifier
RECIPES: dict[type[Classifier], str] = {TextClassifier: "texts", PairClassifier: "pairs"}


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

    `start` is an encoder in place of that of the settings; with `keep_partial`, Ctrl-C finishes
    with the best weights so far.
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
            run.run_epochs(keep_partial)
            run.finish(score_tests)
        except KeyboardInterrupt:  # while the finished model is scored; its state is saved
            raise Interrupted(folder.path, run.state.step) from None
        return run


def fit(
    kind: type[Classifier],
    rows: Any,
    targets: Any,
    start: Start,
    dev: tuple[Any, Any] | None,
    values: Mapping[str, Any],
    out: str | Path | None,
    settings: Sequence[str],
    show_progress_bar: bool,
) -> Classifier:
    """Trains a classifier on rows in memory; see `TextClassifier.fit` for the arguments.

    `values` are those of the recipe by "section.key"; None stands for that of the recipe.
    """
    task = values["data.task"]
    if task not in ("label", "score"):
        raise InputError(unknown_name("task", task, ("label", "score")))
    recipe = RECIPES[kind]
    splits = {"train": read_examples(recipe, rows, targets, task, "training")}
    if dev is not None:
        if not isinstance(dev, tuple | list) or len(dev) != 2:
            raise InputError("dev is not a pair; expected dev=(texts, labels).")
        splits["dev"] = read_examples(recipe, *dev, task, "dev")
    name, encoder = _start(start)
    # A grid search passes NumPy's numbers.
    plain = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in {"start.model": name, **values}.items()
    }
    recipe = start_recipe(recipe, name)
    run = train_model(
        read_settings(recipe_text(recipe), settings, recipe, plain),
        MemoryReader(splits),
        RunFolder(out),
        show_progress=show_progress_bar,
        start=encoder,
        keep_partial=True,
    )
    model = run.prepared.complete_model()
    model.report = FitReport.from_run(run)
    return model


def read_examples(kind: str, rows: Any, targets: Any, task: Task, what: str) -> list[Example]:
    """Returns "texts" or "pairs" as examples; `what` they are for messages: "training", "dev"."""
    sentences: Sequence[tuple[str, str | None]]
    if kind == "pairs":
        sentences = read_pairs(rows, f"the {what} pairs")
    else:
        sentences = [(text, None) for text in read_texts(rows, f"the {what} texts")]
    if not sentences:
        raise InputError(f"there are no {what} rows; expected at least two.")
    name = f"the {what} {task}s"
    if task == "score":
        scores = read_scores(targets, len(sentences), name)
        return [Example(None, *row, score=x) for row, x in zip(sentences, scores, strict=True)]
    labels = label_names(read_labels(targets, len(sentences), name), name)
    return [Example(label, *row) for row, label in zip(sentences, labels, strict=True)]


def start_recipe(recipe: str, start: str) -> str:
    """Returns the recipe to use: for new weights the one with their sizes, if there is one."""
    scratch = f"{recipe}-{SCRATCH}"
    return scratch if start == SCRATCH and scratch in recipe_names() else recipe


def _start(start: Start) -> tuple[str, SentenceEncoder | None]:
    """Returns the name of the start model for the settings, and the encoder if it is loaded."""
    if isinstance(start, str | Path):
        return str(start), None
    encoder = start.encoder if isinstance(start, Classifier) else start
    if not isinstance(encoder, SentenceEncoder):
        raise InputError(
            f"start is a {type(start).__name__}; expected 'embedded', 'scratch', a folder, or a "
            "genpool model."
        )
    return "memory", encoder


class MemoryReader(Reader):
    """Reads lists of examples, by the names of their splits; "train" is among them."""

    needs_path = False

    def __init__(self, examples: Mapping[str, Sequence[Example]]) -> None:
        super().__init__()
        self._examples = dict(examples)

    @property
    def is_pair(self) -> bool:
        """Whether the examples have two sentences."""
        return self._examples["train"][0].second is not None

    def splits(self) -> list[str]:
        """Returns the names of the splits."""
        return list(self._examples)

    def records(self, split: str) -> Iterator[Record]:
        for row, example in enumerate(self._examples[split]):
            yield Record("memory", row, {"example": example})

    def example(self, values: Mapping[str, Any], split: str) -> Example:
        example: Example = values["example"]
        return example


@dataclass(frozen=True)
class FitReport:
    """The course and the scores of a fitted model; a notebook shows it as tables."""

    train_rows: int
    dev: AccuracyReport | ScoreReport  # of the rows that the best model was chosen on
    evaluations: tuple[dict[str, Any], ...]  # step, training loss and dev score of each
    metric: str  # the name of the dev score in them
    seconds: float
    notes: dict[str, str]  # what is to be known about the data
    is_partial: bool = False  # stopped by Ctrl-C

    @classmethod
    def from_run(cls, run: Run) -> FitReport:
        """Returns the report of a finished run."""
        metric, lines = run.objective.metric, run.state.lines
        dev = run.scored["dev"].report
        if dev is None:
            raise TypeError("the dev rows of a run have targets")
        return cls(
            len(run.prepared.train),
            dev,
            tuple({key: line[key] for key in ("step", "train_loss", metric)} for line in lines),
            metric,
            run.state.seconds,
            dict(run.prepared.notes),
            run.is_partial,
        )

    def to_markdown(self) -> str:
        """Returns the report as Markdown."""
        ended = " (stopped by Ctrl-C: the best model so far)" if self.is_partial else ""
        steps = self.evaluations[-1]["step"] if self.evaluations else 0
        course = f"{self.train_rows:,} training rows, {steps:,} steps, {self.seconds:,.0f} s{ended}"
        notes = [markdown_table(("", ""), list(self.notes.items()))] if self.notes else []
        return "\n\n".join([course, *notes, self.dev.to_markdown().strip()]) + "\n"

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        # A notebook renders Markdown, and would take a label like <b> for HTML.
        return self.to_markdown().replace("<", "&lt;")

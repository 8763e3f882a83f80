"""`TextClassifier.fit` and `PairClassifier.fit`: the training loop on examples in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genpool.data.reader import Example
from genpool.errors import InputError, unknown_name
from genpool.model import Classifier, PairClassifier, SentenceEncoder, TextClassifier
from genpool.recipes import recipe_names, recipe_text
from genpool.training.fit_inputs import Task, pair_examples, text_examples
from genpool.training.fit_report import FitReport
from genpool.training.loop import train_model
from genpool.training.memory_reader import MemoryReader
from genpool.training.run_folder import RunFolder
from genpool.training.settings import SCRATCH, read_settings
from genpool.training.unsaved_run import UnsavedRun

Start = str | Path | SentenceEncoder | Classifier
#: the recipe of each kind of classifier, and how its rows are checked
RECIPES: dict[type[Classifier], tuple[str, Callable[[Any, Any, Task, str], list[Example]]]] = {
    TextClassifier: ("texts", text_examples),
    PairClassifier: ("pairs", pair_examples),
}


def fit(
    kind: type[Classifier],
    rows: Any,
    targets: Any,
    *,
    start: Start,
    dev: tuple[Any, Any] | None,
    task: Task,
    freeze: str,
    epochs: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    seed: int,
    out: str | Path | None,
    settings: Sequence[str],
    show_progress_bar: bool,
) -> Classifier:
    """Trains a classifier on rows in memory; see `TextClassifier.fit` for the arguments."""
    if task not in ("label", "score"):
        raise InputError(unknown_name("task", task, ("label", "score")))
    recipe, examples = RECIPES[kind]
    splits = {"train": examples(rows, targets, task, "training")}
    if dev is not None:
        splits["dev"] = examples(*_require_pair(dev), task, "dev")
    name, encoder = _start(start)
    values = {
        "start.model": name,
        "start.freeze": freeze,
        "data.task": task,
        "training.epochs": epochs,
        "training.batch_size": batch_size,
        "training.learning_rate": learning_rate,
        "training.seed": seed,
    }
    # A grid search passes NumPy's numbers.
    plain = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in values.items()
    }
    recipe = start_recipe(recipe, name)
    run = train_model(
        read_settings(recipe_text(recipe), settings, recipe, plain),
        MemoryReader(splits),
        UnsavedRun() if out is None else RunFolder(out),
        show_progress=show_progress_bar,
        start=encoder,
        keep_partial=True,
    )
    model = run.prepared.complete_model()
    model.report = FitReport.from_run(run)
    return model


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


def _require_pair(dev: Any) -> tuple[Any, Any]:
    if not isinstance(dev, tuple | list) or len(dev) != 2:
        raise InputError("dev is not a pair; expected dev=(texts, labels).")
    return dev[0], dev[1]

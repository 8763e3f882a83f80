"""Choosing a setting on the dev set: train one run for each value, score test for the best only."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import load_file

from genpool.errors import ConfigError
from genpool.saving import storage
from genpool.training.finish import finish
from genpool.training.loop import train
from genpool.training.preparation import prepare
from genpool.training.run_folder import RunFolder
from genpool.training.settings import RunSettings, read_settings


@dataclass(frozen=True)
class Candidate:
    """A value, the run that was trained with it, and its dev accuracy."""

    value: str
    folder: RunFolder
    dev_accuracy: float


def parse_selection(text: str) -> tuple[str, list[str]]:
    """ "penalty.weight=1,1e-1" -> ("penalty.weight", ["1", "1e-1"])"""
    key, equals, values = text.partition("=")
    listed = [value.strip() for value in values.split(",") if value.strip()]
    if not equals or len(key.strip().split(".")) != 2 or len(listed) < 2:
        raise ConfigError(
            f"--select {text!r}; expected section.key=value,value,... with two values or more."
        )
    return key.strip(), listed


class Choice(NamedTuple):
    """The value that was chosen, the folder of its model, and its scores."""

    value: str
    model: Path
    results: dict[str, Any]


def select(
    recipe: str,
    overrides: Sequence[str],
    selection: str,
    data: str | Path | None,
    out: str | Path,
    resume: bool = False,
    show_progress: bool = True,
) -> Choice:
    """Trains a run for each value under `out`, chooses by dev accuracy, then scores its test.

    recipe: the TOML text. Runs that are finished already are not trained again with `resume`.
    The first of equals wins. Under torchrun the results are empty in all processes but the first.
    """
    key, values = parse_selection(selection)
    every = {  # all of them are checked before the first is trained
        value: read_settings(recipe, [*overrides, f"{key}={value}"]) for value in values
    }
    first = next(iter(every.values()))
    if key in ("penalty.weight", "penalty.threshold") and first.penalty.name == "none":
        raise ConfigError(
            f"--select {key}: penalty.name is 'none', so all values would give the same model. "
            "Choose a penalty: --set penalty.name=parameter (or attention, embedding)."
        )
    candidates = []
    for value, settings in every.items():
        folder = RunFolder(Path(out) / f"{key}={value}")
        if show_progress:
            print(f"{key} = {value}", file=sys.stderr, flush=True)
        if resume and folder.results.is_file():
            folder.check_settings(settings)
        else:
            train(settings, data, folder.path, resume, show_progress, score_tests=False)
        # From the file, because every process of torchrun has to know it.
        results = json.loads(folder.results.read_text(encoding="utf-8"))
        candidates.append(Candidate(value, folder, results["dev"]["accuracy"]))
    best = max(candidates, key=lambda each: each.dev_accuracy)
    if int(os.environ.get("RANK", "0")) > 0:
        return Choice(best.value, best.folder.best, {})
    results = _score_tests(every[best.value], data, best.folder)
    _write_choice(Path(out), key, candidates, best, results)
    return Choice(best.value, best.folder.best, results)


def _score_tests(
    settings: RunSettings, data: str | Path | None, folder: RunFolder
) -> dict[str, Any]:
    prepared = prepare(settings, data)
    prepared.model.load_state_dict(load_file(folder.best / storage.WEIGHTS))
    return finish(settings, prepared, folder, score_tests=True)


def _write_choice(
    out: Path, key: str, candidates: list[Candidate], best: Candidate, results: dict[str, Any]
) -> None:
    lines = [f"# Choice of {key} by dev accuracy", "", f"| {key} | dev |", "|---|---|"]
    for each in candidates:
        level = ", level with it" if each.dev_accuracy == best.dev_accuracy else ""
        mark = " (chosen)" if each is best else level
        lines.append(f"| {each.value}{mark} | {100 * each.dev_accuracy:.2f} % |")
    lines += ["", f"The model: `{best.folder.best}`"]
    scores = [
        f"- {name}: {100 * each['accuracy']:.2f} %"
        for name, each in results.items()
        if name != "dev"
    ]
    if scores:
        lines += ["", "Scored once, after the choice:", "", *scores]
    best.folder.write(out / "selection.md", "\n".join(lines) + "\n")

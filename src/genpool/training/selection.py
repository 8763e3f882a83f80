"""Choosing settings on the dev set: one run for each combination of values, test for the best."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from safetensors.torch import load_file

from genpool.errors import ConfigError, TrainingError
from genpool.saving import storage
from genpool.training.finish import finish, scores_by_split
from genpool.training.loop import train
from genpool.training.preparation import RUN_ENTRY, prepare_run
from genpool.training.repeated_runs import same_model_reason
from genpool.training.run_folder import RunFolder
from genpool.training.selection_names import folder_name, value_texts
from genpool.training.selection_report import ReportRow, selection_report
from genpool.training.settings import RunSettings, read_settings, require_trainable
from genpool.training.start_model import start_settings

#: settings that change nothing where there is no penalty
PENALTY_ONLY = ("penalty.weight", "penalty.threshold")


class Choice(NamedTuple):
    """The values that were chosen, by setting; the folder of their model; and its scores."""

    values: Mapping[str, str]
    model: Path
    results: dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A combination of values, by setting, and its run."""

    values: Mapping[str, str]
    settings: RunSettings
    folder: RunFolder

    @property
    def title(self) -> str:
        return ", ".join(f"{key} = {value}" for key, value in self.values.items())

    def scores(self) -> dict[str, Any]:
        """Returns the scores of the finished run, by split."""
        # From the file, because every process of torchrun needs them.
        results = json.loads(self.folder.results.read_text(encoding="utf-8"))
        return {name: score for name, score in results.items() if name != RUN_ENTRY}

    def dev_score(self) -> float:
        """Returns the score on dev that the best candidate has the highest of."""
        score = self.scores()["dev"]
        return float(score["accuracy"] if "accuracy" in score else score["spearman"])


def select(
    recipe: str,
    overrides: Sequence[str],
    selections: str | Sequence[str],
    data: str | Path | None,
    out: str | Path,
    resume: bool = False,
    show_progress: bool = True,
    score_tests: bool = True,
    values: Mapping[str, Any] = MappingProxyType({}),
) -> Choice:
    """Trains a run for each combination of values and chooses the one with the best dev accuracy.

    A combination that would repeat the model of an earlier one, because only the weight of a
    penalty without effect differs, is not run. `selection.md` lists all combinations.

    Args:
        recipe: The text of the recipe.
        overrides: Settings that all runs share, as "section.key=value".
        selections: One or several "section.key=value,value,..."; several make a grid.
        data: Folder or file of the data; None for a reader that generates it.
        out: Folder for the runs, one subfolder each.
        resume: Keep finished runs and continue the one that stopped. Default: False.
        show_progress: Show progress on standard error. Default: True.
        score_tests: Score the test splits with the chosen model. Default: True.
        values: Settings that all runs share, as `read_settings` takes them. Default: none.

    Returns:
        The choice; of equals the first. Under torchrun its results are empty in all processes but
        the first.

    Raises:
        ConfigError: a selection or one of the combinations is wrong; nothing has been trained.
        TrainingError: the folder holds runs of another selection.
    """
    axes = parse_selections([selections] if isinstance(selections, str) else selections)
    candidates = _candidates(recipe, overrides, axes, Path(out), values)
    _require_own_runs(Path(out), candidates)
    for candidate in candidates:
        require_trainable(candidate.settings, data)
    is_main = int(os.environ.get("RANK", "0")) == 0
    trained: list[Candidate] = []
    rows: list[ReportRow] = []
    for candidate in candidates:
        finished = resume and candidate.folder.results.is_file()
        if not finished and (reason := _repeats(candidate, trained)):
            rows.append(ReportRow(candidate.values, note=f"not run: {reason}"))
            if is_main:
                print(f"{candidate.title}: not run: {reason}", file=sys.stderr, flush=True)
            continue
        if show_progress and is_main:
            print(candidate.title, file=sys.stderr, flush=True)
        if finished:
            candidate.folder.check_settings(start_settings(candidate.settings)[0])
        else:
            path = candidate.folder.path
            train(candidate.settings, data, path, resume, show_progress, score_tests=False)
        trained.append(candidate)
        rows.append(ReportRow(candidate.values, candidate.dev_score()))
    accuracies = [candidate.dev_score() for candidate in trained]
    best = trained[accuracies.index(max(accuracies))]
    if not is_main:
        return Choice(best.values, best.folder.best, {})
    scores = _score_tests(best, data) if score_tests else best.scores()
    page = selection_report(axes, rows, best.values, best.folder.best, scores, score_tests)
    best.folder.write(Path(out) / "selection.md", page)
    return Choice(best.values, best.folder.best, scores)


def parse_selections(texts: Iterable[str]) -> dict[str, list[str]]:
    """Returns the values of each setting: ["pooling.heads=1,5"] -> {"pooling.heads": ["1", "5"]}.

    Raises:
        ConfigError: with every text that is not a selection or repeats a setting.
    """
    axes: dict[str, list[str]] = {}
    problems = []
    for text in texts:
        key, equals, values = text.partition("=")
        name, listed = key.strip(), list(dict.fromkeys(value_texts(values)))
        if not equals or len(name.split(".")) != 2 or not all(name.split(".")) or len(listed) < 2:
            problems.append(
                f"--select {text!r}; expected section.key=value,value,... with two values or more."
            )
        elif name in axes:
            problems.append(f"--select {name} is given twice; list all of its values in one.")
        else:
            axes[name] = listed
    if problems:
        raise ConfigError(problems)
    return axes


def _candidates(
    recipe: str,
    overrides: Sequence[str],
    axes: Mapping[str, Sequence[str]],
    out: Path,
    shared: Mapping[str, Any],
) -> list[Candidate]:
    """Returns all combinations, after checking the settings of each."""
    candidates: list[Candidate] = []
    problems: dict[str, None] = {}  # most mistakes are those of many combinations
    for combination in product(*axes.values()):
        values = dict(zip(axes, combination, strict=True))
        own = [f"{key}={value}" for key, value in values.items()]
        try:
            settings = read_settings(recipe, [*overrides, *own], values=shared)
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
            continue
        candidates.append(Candidate(values, settings, RunFolder(out / folder_name(values))))
    if problems:
        raise ConfigError(problems)
    useless = [key for key in axes if key in PENALTY_ONLY]
    if useless and all(candidate.settings.penalty.name == "none" for candidate in candidates):
        raise ConfigError(
            f"--select {useless[0]}: penalty.name is 'none', so all values would give the same "
            "model. Choose a penalty: --set penalty.name=parameter (or attention, embedding)."
        )
    return candidates


def _require_own_runs(out: Path, candidates: Iterable[Candidate]) -> None:
    """Refuses a folder with runs of another selection: its report would be about some of them."""
    own = {candidate.folder.path.name for candidate in candidates}
    runs = sorted(path.parent.name for path in out.glob("*/config.toml"))
    others = [name for name in runs if name not in own]
    if others:
        raise TrainingError(
            f"{out} holds runs of another selection ({', '.join(others[:3])}"
            f"{' ...' if len(others) > 3 else ''}). Name another folder with --out, or repeat "
            "--select with those values too."
        )


def _repeats(candidate: Candidate, trained: Iterable[Candidate]) -> str | None:
    """Returns why a candidate would be the same model as one that is trained, if so."""
    for other in trained:
        reason = same_model_reason(candidate.settings, other.settings, other.folder.metric_lines())
        if reason is not None:
            return f"{reason}, same model as {other.title}"
    return None


def _score_tests(best: Candidate, data: str | Path | None) -> dict[str, Any]:
    settings, prepared = prepare_run(best.settings, data)
    prepared.load_weights(load_file(best.folder.best / storage.WEIGHTS))
    return scores_by_split(finish(settings, prepared, best.folder, score_tests=True))

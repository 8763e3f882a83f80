"""Choosing settings on the dev set: one run for each combination of values, test for the best."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from safetensors.torch import load_file

from genpool.disk.atomic import write_text_file
from genpool.disk.files import markdown_table, percent
from genpool.errors import ConfigError, TrainingError
from genpool.saving import storage
from genpool.training.fitting import train
from genpool.training.preparation import RUN_ENTRY, prepare
from genpool.training.report import finish, score_text, scores_by_split
from genpool.training.run_folder import RunFolder
from genpool.training.settings import RunSettings, read_settings, require_trainable
from genpool.training.start_model import start_settings

#: settings that change nothing where there is no penalty
PENALTY_ONLY = ("penalty.weight", "penalty.threshold")
#: what may not be in a value within a folder's name on every system; nor may upper case, because
#: on some systems two names that differ in case alone are the same
_UNSAFE = re.compile(r"[^a-z0-9._+-]+|[.]+$")
MAX_NAME_CHARACTERS = 150


class Selected(NamedTuple):
    """The values that were chosen, by setting; the folder of their model; and its scores."""

    values: Mapping[str, str]
    model: Path
    results: dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A combination of values, by setting, its run, and why it is not run, if so."""

    values: Mapping[str, str]
    settings: RunSettings
    folder: RunFolder
    not_run: str = ""

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
    plugins: Sequence[str] = (),
) -> Selected:
    """Trains a run for each combination of values and chooses the one with the best dev accuracy.

    A selection is "section.key=value,value,..."; several make a grid, with a folder in `out` for
    each combination, and `selection.md` lists them. One that would repeat the model of an earlier
    one, because only a penalty without effect differs, is not run. Of equals the first is chosen;
    under torchrun, results are empty in all processes but the first. The other arguments are those
    of `read_settings` and `train`; all combinations are checked before the first is trained.
    """
    axes = parse_selections([selections] if isinstance(selections, str) else selections)

    def read(own: list[str]) -> RunSettings:
        return read_settings(recipe, [*overrides, *own], values=values, plugins=plugins)

    candidates = _candidates(read, axes, Path(out))
    _require_own_runs(Path(out), candidates)
    for candidate in candidates:
        require_trainable(candidate.settings, data)
    is_main = int(os.environ.get("RANK", "0")) == 0
    trained: list[Candidate] = []
    for number, candidate in enumerate(candidates):
        finished = resume and candidate.folder.results.is_file()
        reasons = (_repeats(candidate.settings, other) for other in trained)
        if not finished and (reason := next(filter(None, reasons), None)):
            candidates[number] = replace(candidate, not_run=reason)
            if is_main:
                print(f"{candidate.title}: {reason}", file=sys.stderr, flush=True)
            continue
        if show_progress and is_main:
            print(candidate.title, file=sys.stderr, flush=True)
        if finished:
            candidate.folder.check_settings(start_settings(candidate.settings)[0])
        else:
            path = candidate.folder.path
            train(candidate.settings, data, path, resume, show_progress, score_tests=False)
        trained.append(candidate)
    best = max(trained, key=Candidate.dev_score)
    if not is_main:
        return Selected(best.values, best.folder.best, {})
    scores = best.scores()
    if score_tests:
        settings, start = start_settings(best.settings)
        prepared = prepare(settings, data, start)
        prepared.load_weights(load_file(best.folder.best / storage.WEIGHTS))
        scores = scores_by_split(finish(settings, prepared, best.folder, score_tests=True))
    page = _report(axes, candidates, best, scores, score_tests)
    write_text_file(Path(out) / "selection.md", page)
    return Selected(best.values, best.folder.best, scores)


def parse_selections(texts: Iterable[str]) -> dict[str, list[str]]:
    """Returns the values of each setting, ["a.b=1,5"] -> {"a.b": ["1", "5"]}."""
    axes: dict[str, list[str]] = {}
    problems = []
    for text in texts:
        key, equals, values = text.partition("=")
        # Commas within brackets or quotes do not separate: "[1,3], [5]" -> "[1,3]", "[5]".
        pieces = re.findall(r"""(?:\[[^\]]*\]|"[^"]*"|'[^']*'|[^,])+""", values)
        listed = list(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))
        name = key.strip()
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


def folder_name(values: Mapping[str, str]) -> str:
    """Returns a folder's name for a combination, such as "penalty.weight=0.1,pooling.heads=5".

    Where values hold characters that some system does not allow, a hash of them is added.
    """
    safe = {key: _UNSAFE.sub("-", value.lower()) for key, value in values.items()}
    name = ",".join(f"{key}={value}" for key, value in safe.items())
    if safe == values and len(name) <= MAX_NAME_CHARACTERS:
        return name
    digest = hashlib.sha256(repr(list(values.items())).encode()).hexdigest()
    return f"{name[:MAX_NAME_CHARACTERS]}-{digest[:8]}"


def _candidates(
    read: Callable[[list[str]], RunSettings], axes: Mapping[str, Sequence[str]], out: Path
) -> list[Candidate]:
    """Returns all combinations, after checking the settings of each."""
    candidates: list[Candidate] = []
    problems: dict[str, None] = {}  # most mistakes are those of many combinations
    for combination in product(*axes.values()):
        values = dict(zip(axes, combination, strict=True))
        try:
            settings = read([f"{key}={value}" for key, value in values.items()])
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


def _repeats(settings: RunSettings, other: Candidate) -> str | None:
    """Returns why a run would end with the weights of another, bit for bit; or None.

    With every hinge inactive in every step the penalty and its gradient are exactly zero, so that
    neither its weight nor a threshold below all distances has any effect.
    """
    there, here = other.settings.penalty, settings.penalty
    changed = replace(here, weight=there.weight, threshold=there.threshold)
    if replace(settings, penalty=there) != other.settings or changed != there:
        return None
    if here.name == "none":
        return f"not run: penalty.name is none, same model as {other.title}"
    # A weight of 0 leaves the term out: that is another computation, if only in its rounding.
    if not all(0 < penalty.weight < math.inf for penalty in (there, here)):
        return None
    lines = other.folder.metric_lines()
    if not lines or any(line.get("penalty_active") != 0 for line in lines):
        return None
    closest = min(line.get("penalty_distance_min", -math.inf) for line in lines)
    if here.threshold > max(there.threshold, closest):
        return None
    return f"not run: inactive at threshold {here.threshold:g}, same model as {other.title}"


def _report(
    axes: Mapping[str, Sequence[str]],
    candidates: Sequence[Candidate],
    chosen: Candidate,
    scores: Mapping[str, Any],
    tests_scored: bool,
) -> str:
    """Returns the text of selection.md: every combination with its dev score, and the choice."""
    dev = [None if candidate.not_run else candidate.dev_score() for candidate in candidates]
    best, table = chosen.dev_score(), []
    for candidate, score in zip(candidates, dev, strict=True):
        cell = "-" if score is None else percent(score)
        note = "level with the chosen one" if score == best else candidate.not_run
        is_chosen = candidate.values == chosen.values
        table.append([*candidate.values.values(), cell, "chosen" if is_chosen else note])
    title = "accuracy" if "accuracy" in scores["dev"] else "Spearman"
    parts = [f"# Choice of {' and '.join(axes)} by dev {title}"]
    parts.append(markdown_table([*axes, f"dev {title}", "note"], table))
    parts.append(f"The model: `{chosen.folder.best}`")
    tests = [
        f"- {name}: {score_text(score).removeprefix('accuracy: ')}"
        for name, score in scores.items()
        if name != "dev"
    ]
    if not tests_scored:
        parts.append("The test splits were not scored (`--no-test`).")
    elif tests:
        parts += ["Scored once, after the choice:", "\n".join(tests)]
    return "\n\n".join(parts) + "\n"

"""What a table of results needs to know about a run, besides its scores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from genpool.training.preparation import Prepared
from genpool.training.run_folder import RunFolder
from genpool.training.settings import RunSettings
from genpool.training.state import trainable_parameters


def run_summary(
    settings: RunSettings,
    prepared: Prepared,
    folder: RunFolder,
    lines: Sequence[Mapping[str, Any]],
    scored: Iterable[str],
) -> dict[str, Any]:
    """Returns the entry of results.json that is about the run.

    Args:
        settings: The settings of the run.
        prepared: The model and its splits.
        folder: The folder of the run.
        lines: The lines of metrics.jsonl.
        scored: The names of the splits that have predictions.
    """
    about = json.loads(folder.about.read_text(encoding="utf-8"))
    last, model = lines[-1], prepared.model
    trained = sum(parameter.numel() for parameter in trainable_parameters(model))
    return {
        "seed": settings.training.seed,
        "steps": last["step"],
        "epochs": last["epoch"],
        "seconds": last["seconds"],
        "train_examples": len(prepared.train),
        "trained_parameters": trained,
        "frozen_parameters": sum(weight.numel() for weight in model.parameters()) - trained,
        "tests_scored": bool(set(scored) & set(prepared.tests)) or not prepared.tests,
        "predictions": {name: f"{folder.predictions.name}/{name}.tsv" for name in scored},
        **about,
    }

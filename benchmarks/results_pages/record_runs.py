"""Writes the scores of finished training runs to results/training.md.

    python -m benchmarks.results_pages.record_runs runs/sick runs/trec ...

Every row is read from the files of a run: recipe, seed, scores, time and versions.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.pages import markdown_table, write_page

INTRODUCTION = """
Each row is a run of the command below it, scored once on test with the model that was best on dev.
The vectors are 33,860 words of GloVe 840B, in the folder `DATA` with the data sets. "Majority" is
the accuracy of always answering the most frequent label of the test set. Times are those of a
machine of two cores that did other work at the same time.
"""
HEADER = ["recipe", "dev", "test", "95 % interval", "majority", "seed", "time", "threads"]
COMMAND = (
    "genpool train {name} --data DATA/{folder} "
    "--set vectors.path=DATA/vectors/glove.840B.300d.subset.txt.xz"
)


def row_of(run: Path) -> tuple[list[str], str, dict[str, Any]]:
    """Returns the table's row, the command, and the content of run.json."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    about = json.loads((run / "run.json").read_text(encoding="utf-8"))
    settings = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))
    last = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    test = results["test"]
    low, high = (100 * limit for limit in test["interval"])
    majority = max(label["support"] for label in test["classes"]) / test["total"]
    row = [
        run.name,
        f"{100 * results['dev']['accuracy']:.2f} %",
        f"**{100 * test['accuracy']:.2f} %**",
        f"{low:.2f} to {high:.2f}",
        f"{100 * majority:.2f} %",
        str(settings["training"]["seed"]),
        f"{last['seconds'] / 60:.0f} min",
        str(about["threads"]),
    ]
    folder = Path(about["data"]).name
    return row, COMMAND.format(name=run.name, folder=folder), about


def main(runs: list[Path]) -> None:
    rows, commands, abouts = zip(*map(row_of, runs), strict=True)
    about = abouts[0]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    write_page(
        "training",
        [
            "# Trained models: test accuracy",
            INTRODUCTION,
            markdown_table(HEADER, rows),
            "```bash\n" + "\n".join(commands) + "\n```",
            f"Versions: {versions}; {about['machine']}, {about['device']}.",
        ],
    )


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])

"""Puts the scores of finished training runs into results/training.md.

    python benchmarks/record_runs.py runs/sick runs/trec ...

Every row is read from a run's own files: recipe, seed, scores, time and versions.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results" / "training.md"
HEAD = """# Trained models: test accuracy

Each row is a run of the command below it, scored once on test with the model that was best on dev.
The vectors are 33,860 words of GloVe 840B, in the folder `DATA` with the data sets. "Majority" is
the accuracy of always answering the most frequent label of the test set. Times are those of a
machine of two cores that did other work beside.

| recipe | dev | test | 95 % interval | majority | seed | time | threads |
|---|---|---|---|---|---|---|---|
"""
COMMAND = (
    "genpool train {name} --data DATA/{folder} "
    "--set vectors.path=DATA/vectors/glove.840B.300d.subset.txt.xz"
)


def row_of(run: Path) -> tuple[str, str, dict[str, Any]]:
    """The table's row, the command, and what is known about the run."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    about = json.loads((run / "run.json").read_text(encoding="utf-8"))
    settings = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))
    last = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    test = results["test"]
    low, high = (100 * each for each in test["interval"])
    support = Counter({each["label"]: each["support"] for each in test["classes"]})
    majority = support.most_common(1)[0][1] / test["total"]
    row = (
        f"| {run.name} | {100 * results['dev']['accuracy']:.2f} % | "
        f"**{100 * test['accuracy']:.2f} %** | {low:.2f} to {high:.2f} | {100 * majority:.2f} % | "
        f"{settings['training']['seed']} | {last['seconds'] / 60:.0f} min | {about['threads']} |"
    )
    folder = Path(about["data"]).name
    return row, COMMAND.format(name=run.name, folder=folder), about


def main(runs: list[Path]) -> None:
    rows, commands, abouts = zip(*map(row_of, runs), strict=True)
    versions = ", ".join(f"{name} {version}" for name, version in abouts[0]["versions"].items())
    text = HEAD + "\n".join(rows) + "\n\n```bash\n" + "\n".join(commands) + "\n```\n\n"
    text += f"Versions: {versions}; {abouts[0]['machine']}, {abouts[0]['device']}.\n"
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])

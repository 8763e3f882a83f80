"""Runs the comparisons and prints their ratios.

python -m benchmarks [--only training-snli] [--rounds 5] [--json rows.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from benchmarks.training import SIZES, training_rows
from genpool.training.tracking import versions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[f"training-{name}" for name in SIZES])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows = []
    print(f"{torch.get_num_threads()} threads; {versions()}")
    print(f"{'comparison':20} {'ratio':>6} {'spread':>14} {'goal':>6}  met")
    for name, size in SIZES.items():
        if chosen.only not in (None, f"training-{name}"):
            continue
        for row in training_rows(size, chosen.rounds):
            low, high = row.spread
            met = "yes" if row.met else "no"
            print(
                f"{row.name:20} {row.ratio:6.2f} {f'{low:.2f} to {high:.2f}':>14} "
                f"{row.goal:6.2f}  {met:4} {row.note}",
                flush=True,
            )
            rows.append(row.to_dict())
    if chosen.json:
        text = json.dumps({"rows": rows, "versions": versions()}, indent=2)
        chosen.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

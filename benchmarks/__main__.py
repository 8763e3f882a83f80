"""Runs the speed comparisons of results/bench.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.speed.comparisons import run
from genpool.errors import GenpoolError

PAGE = Path(__file__).parents[1] / "results" / "bench.md"


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="ROW", help="run only the comparison of this name")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each side; default 5")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--write", action="store_true", help="also write results/bench.md")
    options = parser.parse_args()
    try:
        run(options.only, options.rounds, options.json, PAGE if options.write else None)
    except GenpoolError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()

"""How long importing genpool takes, with all of a model, beside `import torch`."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.speed.harness import Row, interleaved, ratios


def import_rows(rounds: int) -> list[Row]:
    def importing(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    seconds = interleaved(
        {
            "genpool": lambda: importing("from genpool import SentenceEncoder"),
            "torch": lambda: importing("import torch"),
        },
        max(rounds, 7),
    )
    ratio, spread = ratios(seconds["genpool"], seconds["torch"])
    return [Row("import", ratio, spread, 1.3, at_most=True)]

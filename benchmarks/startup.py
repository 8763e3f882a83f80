"""How long `import genpool` takes, beside `import torch`."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness import Row, interleaved, ratios


def import_rows(rounds: int) -> list[Row]:
    def importing(name: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {name}"], check=True)

    seconds = interleaved(
        {"genpool": lambda: importing("genpool"), "torch": lambda: importing("torch")},
        max(rounds, 7),
    )
    ratio, spread = ratios(seconds["genpool"], seconds["torch"])
    return [Row("import", ratio, spread, 1.3, at_most=True)]

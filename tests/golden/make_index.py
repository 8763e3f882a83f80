"""Creates the golden index: `python -m tests.golden.make_index`.

It is created once for a format version: from then on it must be read for ever.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from genpool.search import ModelReference, build_lists, index_writer

FOLDER = Path(__file__).parent / "v1-index"
SENTENCES = ["The wug blicks.", "", "zorp “tove” 🐙", "two\nlines", "Wug", "dax", "a", "b", "c"]
VALUES = [(f"w{row}", "en" if row % 2 else None, row / 2) for row in range(len(SENTENCES))]
VECTORS = np.array([[row % 3 - 1, row % 4 - 1.5] for row in range(len(SENTENCES))], np.float32)


def main() -> None:
    model = ModelReference("sha256:of-no-model", title="Golden")
    with index_writer(FOLDER, 2, model, ["key", "lang", "half"], "key") as write:
        write(SENTENCES, VECTORS, VALUES)
    build_lists(FOLDER)


if __name__ == "__main__":
    main()

"""Creates the golden index of a format version: `python tests/golden/make_index.py 2`.

Like the other golden folders, each is created once and never again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from genpool.search import ModelReference, index_writer

HERE = Path(__file__).parent
SENTENCES = ["The wug blicks.", "", "zorp “tove” 🐙", "two\nlines", "Wug", "dax", "a", "b", "c"]
VALUES = [(f"w{row}", "en" if row % 2 else None, row / 2) for row in range(len(SENTENCES))]
VECTORS = np.array([[row % 3 - 1, row % 4 - 1.5] for row in range(len(SENTENCES))], np.float32)


def main() -> None:
    version = int(sys.argv[1])
    model = ModelReference("sha256:of-no-model", title="Golden")
    if version == 1:
        with index_writer(HERE / "v1-index", 2, model) as write:
            write(SENTENCES, VECTORS)
        return
    from genpool.search import build_lists

    with index_writer(HERE / "v2-index", 2, model, ["key", "lang", "half"], "key") as write_rows:
        write_rows(SENTENCES, VECTORS, VALUES)
    build_lists(HERE / "v2-index")


if __name__ == "__main__":
    main()

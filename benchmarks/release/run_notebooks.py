"""Runs the notebooks of examples/ and keeps their outputs.

python -m benchmarks.release.run_notebooks [NAME ...]
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from benchmarks.data import REPOSITORY

FOLDER = REPOSITORY / "examples"
#: a cell that takes longer is wrong
CELL_SECONDS = 600


def run_notebook(path: Path) -> nbformat.NotebookNode:
    """Returns a notebook with the outputs of a fresh run; a cell that fails is an error."""
    notebook = nbformat.read(path, as_version=4)
    # The notebook's own interpreter and commands come first.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, kernel_name="python3", resources={"metadata": {"path": "."}}
    )
    client.execute()
    return notebook


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Removes what differs between runs: times, and what was printed on standard error."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if not (output.output_type == "stream" and output.name == "stderr")
            ]
            for output in cell.outputs:
                if "data" in output and "text/plain" in output.data:
                    text = output.data["text/plain"]
                    output.data["text/plain"] = re.sub(r" at 0x[0-9a-f]+", "", text)
    return notebook


def main(names: list[str]) -> None:
    """Runs and writes all notebooks, or those with these names."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(clean(run_notebook(path)), path)
            print(path.name, path.stat().st_size // 1024, "KB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The section "Engines" of results/search.md, from the measurements of search_engines.py.

    python -m benchmarks.results_pages.search_engines_page *.json            prints it
    python -m benchmarks.results_pages.search_engines_page *.json --write    writes it into the page

The figures do not say by themselves which engine to choose: that is written by hand (--reason).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from pathlib import Path
from typing import Any

from benchmarks.pages import markdown_table, page_path
from benchmarks.results_pages.search_engines import TOP
from genpool.search.approximate import PROBES
from genpool.search.index_folder import MIN_ROWS

HEADING = "## Engines for many rows"
TITLES = {
    "genpool": "genpool, lists of FAISS (IVF, SQ8)",
    "lancedb": "LanceDB (IVF, PQ)",
    "hnsw": "FAISS (HNSW32, SQ8)",
}
HEADER = [
    "vectors",
    "engine",
    "reads",
    "recall",
    "CPU per query",
    "building, CPU",
    "memory",
    "disk",
]

Result = dict[str, Any]


def recall(rows: list[list[int]], exact: list[list[int]]) -> float:
    """Returns the share of the exact hits that were found."""
    found = sum(len(set(a) & set(b)) for a, b in zip(rows, exact, strict=True))
    return found / sum(map(len, exact))


def table(results: list[Result]) -> str:
    """Returns a row for every engine and setting, beside the exact search of the same vectors."""
    exact = {
        (result["vectors"], result["dim"]): result["answers"]["all rows"]["rows"]
        for result in results
        if result["engine"] == "genpool"
    }
    rows = []
    for result in results:
        size = (result["vectors"], result["dim"])
        for kind, answer in result["answers"].items():
            rows.append(
                [
                    f"{size[0]:,} x {size[1]}",
                    TITLES[result["engine"]],
                    kind,
                    f"{recall(answer['rows'], exact[size]):.3f}",
                    f"{1e3 * answer['cpu']:.1f} ms",
                    f"{result['build_cpu']:.0f} s",
                    f"{result['memory']:.2f} GB",
                    f"{result['disk'] / 1e9:.2f} GB",
                ]
            )
    return markdown_table(HEADER, rows, text=3)


def section(results: list[Result], reason: str) -> str:
    """Returns the section as text, which ends with the reason for the engine that was chosen."""
    queries = sorted({result["queries"] for result in results})
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("faiss-cpu", "lancedb", "numpy")
    )
    return "\n".join(
        [
            HEADING,
            "",
            "    python -m benchmarks.results_pages.search_engines ENGINE ROWS.npy N DIM Q.npy",
            "    python -m benchmarks.results_pages.search_engines_page *.json --write",
            "",
            f"{versions}; one thread. Vectors of English sentences by the embedded encoder",
            "(`genpool encode --int8`), queries are other sentences of the same sources "
            f"({', '.join(map(str, queries))} of them).",
            f"Recall is the share of the {TOP} best rows of the exact search that are found. CPU",
            "seconds, because other work ran on the machine. Memory is what the process had more",
            "at the peak of building than with the vectors loaded, pages of mapped files included;",
            "building includes the copy of the rows to disk. The lists of genpool score four",
            "candidates for each hit exactly, and read the sentences of the hits; LanceDB scores",
            "those it refines, and HNSW none: it ranks by its 8-bit codes.",
            "",
            table(results),
            "",
            f"From {MIN_ROWS:,} rows on `genpool encode` makes lists, and a search reads {PROBES}",
            "of them; their candidates are scored exactly from the vectors. " + reason,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="The section on engines of results/search.md.")
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--reason", default="", help="why an engine was chosen; what is missing")
    parser.add_argument("--write", action="store_true", help="write it into results/search.md")
    options = parser.parse_args()
    results = [json.loads(path.read_text(encoding="utf-8")) for path in options.results]
    text = section(results, options.reason)
    print(text)
    if options.write:
        page = page_path("search")
        before = page.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
        page.write_text(f"{before}\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()

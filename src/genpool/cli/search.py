"""genpool search, and genpool index: look at an index, delete rows, make lists."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Argument, Option

from genpool.cli import options
from genpool.errors import InputError, counted

if TYPE_CHECKING:
    from genpool.search import Hit, SearchIndex

#: piped queries that are encoded and searched together
QUERIES_TOGETHER = 64


def search(
    folder: options.IndexArgument,
    query: str = Argument(help="A sentence; - reads one per line."),
    model: Path | None = Option(
        None, help="Folder of the model. Default: the one that made INDEX."
    ),
    top: int = Option(10, min=1, help="Sentences per query."),
    where: str | None = Option(
        None,
        metavar="CONDITION",
        help="Only rows whose columns fit: 'lang == \"en\" and year >= 2000'. "
        "Also in [...], not, or, null.",
    ),
    exact: bool = Option(False, "--exact", help="Compare all rows, even if INDEX has lists."),
    as_json: bool = Option(False, "--json", help="One JSON object per query."),
    plugin: options.Plugin = None,
) -> None:
    """Print the sentences closest to a query: cosine, row (from 0), sentence, columns.

    Example: genpool search index "A dog runs."
    """
    from genpool import SentenceEncoder
    from genpool.data.sentences import read_sentences
    from genpool.search import SearchIndex
    from genpool.search.index_folder import MIN_ROWS
    from genpool.search.where import parse_condition

    index = SearchIndex.open(folder)
    if where is not None:  # before the model is loaded, which takes longer
        parse_condition(where, index.card.columns)
    if model is not None:
        index = SearchIndex.open(folder, SentenceEncoder.from_pretrained(model))
    if len(index) >= MIN_ROWS and not index.card.lists:
        typer.echo(
            f"{folder} has {len(index):,} rows; `genpool index build {folder}` makes searches "
            "faster (extra faiss)",
            err=True,
        )
    if not len(index):
        typer.echo(f"{folder} is empty: the file it was made from had no sentences.", err=True)
    many = query == "-"
    queries = read_sentences("-") if many else iter([query])
    answers = _answers(index, queries, (top, where, exact))
    for number, (text, hits) in enumerate(answers, start=1):
        if hits is None and not many:
            raise InputError(f"the query {text!r} has no words; expected a sentence.")
        if hits is None:
            typer.echo(f"standard input, line {number}: a query without words, no hits", err=True)
        answer = [_as_json(text, hits or [])] if as_json else _as_text(text, hits or [], many)
        for line in answer:
            # Half a surrogate pair, which an index can contain, has no bytes to print.
            typer.echo(line.encode("utf-8", "replace").decode("utf-8"))


def _answers(
    index: SearchIndex, queries: Iterator[str], how: tuple[int, str | None, bool]
) -> Iterator[tuple[str, list[Hit] | None]]:
    """Yields every query with its hits; None for a query without words, equally close to all."""
    # At a terminal every line is answered at once; in a file, many share a pass over the rows.
    size = 1 if sys.stdin is not None and sys.stdin.isatty() else QUERIES_TOGETHER
    while texts := list(islice(queries, size)):
        words, found = index.encoder.text.words_batch(texts), index.search(texts, *how)
        for text, text_words, hits in zip(texts, words, found, strict=True):
            yield text, hits if text_words else None


def _as_json(query: str, hits: Iterable[Hit]) -> str:
    rows = [{**hit._asdict(), "score": round(hit.score, 6)} for hit in hits]
    rows = [{name: row[name] for name in row if name != "values" or row["values"]} for row in rows]
    return json.dumps({"query": query, "hits": rows}, ensure_ascii=False)


def _as_text(query: str, hits: Iterable[Hit], many: bool) -> Iterator[str]:
    """Yields one line per hit, without the line breaks of its sentence; of many, the query too."""
    if many:
        yield f"query: {query}"
    for hit in hits:
        columns = [f"{name}={value}" for name, value in hit.values.items()]
        fields = [f"{hit.score:.4f}", str(hit.row), hit.sentence, *columns]
        yield "\t".join(" ".join(field.splitlines()) for field in fields)


app = typer.Typer(no_args_is_help=True)


@app.callback()
def change() -> None:
    """Look at an index, delete rows, or prepare it for fast searches.

    Example: genpool index info index
    """


@app.command()
def info(folder: options.IndexArgument) -> None:
    """Print what an index holds: rows, dimensions, columns, lists, and its model.

    Example: genpool index info index
    """
    from genpool.search import SearchIndex

    card = SearchIndex.open(folder).card
    names = [f"{name} (id)" if name == card.id else name for name in card.columns]
    typer.echo(
        f"rows:        {card.rows:,}\n"
        f"dimensions:  {card.dim:,}{', of length 1' if card.normalized else ''}\n"
        f"columns:     {', '.join(names) or 'none'}\n"
        f"lists:       {f'{card.lists:,}' if card.lists else 'none: searches are exact'}\n"
        f"model:       {card.model}"
    )


@app.command()
def delete(
    folder: options.IndexArgument,
    ids: list[str] = Argument(metavar="ID...", help="Ids of the rows to delete."),
) -> None:
    """Delete the rows with these ids; the index was made with encode --id COLUMN.

    Example: genpool index delete index a1 a2
    """
    from genpool.search import delete_rows

    typer.echo(f"deleted {counted(delete_rows(folder, ids), 'row')} of {folder}")


@app.command()
def build(folder: options.IndexArgument) -> None:
    """Make lists of similar rows, for approximate searches of large indexes (extra faiss).

    A search then reads a few lists instead of all rows; search --exact still reads all of them.

    Example: genpool index build index
    """
    from genpool.search import build_lists

    typer.echo(f"{folder}: {build_lists(folder):,} lists")

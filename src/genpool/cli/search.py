"""genpool search"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genpool.errors import FolderError, InputError

if TYPE_CHECKING:
    from genpool import SentenceEncoder
    from genpool.search import Hit, SearchIndex


def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Made by encode -o INDEX/.")],
    query: Annotated[str, typer.Argument(help="A sentence; - reads one a line.")],
    model: Annotated[Path | None, typer.Option(help="Its model; else the one it names.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Sentences to print.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a query.")] = False,
) -> None:
    """Print the sentences nearest to a query: cosine, row (from 0), sentence.

    Example: genpool search index "A dog runs."
    """
    from genpool.data.sentences import read_sentences
    from genpool.search import SearchIndex

    index = SearchIndex.open(folder)
    encoder = _load(index, model)
    index.require_model(encoder)
    if not len(index):
        typer.echo(f"{folder} is empty: the file that it was made of had no sentences.", err=True)
    many = query == "-"
    queries = read_sentences("-") if many else iter([query])
    for number, (text, hits) in enumerate(_answers(index, encoder, queries, top), start=1):
        if hits is None and not many:
            raise InputError(f"the query {text!r} has no words; expected a sentence.")
        if hits is None:
            typer.echo(f"standard input, line {number}: a query without words, no hits", err=True)
        found = hits or []
        for line in _as_json(text, found) if as_json else _as_text(text if many else None, found):
            # Half a surrogate pair, which a JSON table can hold, has no bytes to print.
            typer.echo(line.encode("utf-8", "replace").decode("utf-8"))


def _load(index: SearchIndex, model: Path | None) -> SentenceEncoder:
    from genpool import SentenceEncoder

    named = index.card.model.path
    if model is not None or named is None:
        return SentenceEncoder.from_pretrained(model)
    try:
        return SentenceEncoder.from_pretrained(named)
    except FolderError as error:
        raise FolderError(
            f"{index.path} was made with the model {named}, which cannot be loaded: {error} "
            "Say where it is now: --model FOLDER."
        ) from error


def _answers(
    index: SearchIndex, encoder: SentenceEncoder, queries: Iterator[str], top: int
) -> Iterator[tuple[str, list[Hit] | None]]:
    """Every query with its hits; None for one without words, which is as near to any row."""
    # A person who types wants an answer to each line; of a file, many share a pass over the rows.
    size = 1 if sys.stdin.isatty() else 64
    while some := list(islice(queries, size)):
        words = encoder.text.tokenizer.words_batch(some)
        found = index.search(encoder.encode(some, truncate_dim=index.card.dim), top)
        for text, own, hits in zip(some, words, found, strict=True):
            yield text, hits if own else None


def _as_json(query: str, hits: Iterable[Hit]) -> Iterator[str]:
    found = [{**hit._asdict(), "score": round(hit.score, 6)} for hit in hits]
    yield json.dumps({"query": query, "hits": found}, ensure_ascii=False)


def _as_text(heading: str | None, hits: Iterable[Hit]) -> Iterator[str]:
    """A line a hit, whatever line breaks its sentence has; the query above, if there are many."""
    if heading is not None:
        yield f"query: {heading}"
    for hit in hits:
        yield f"{hit.score:.4f}\t{hit.row}\t{' '.join(hit.sentence.splitlines())}"

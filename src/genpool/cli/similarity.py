"""genpool similarity"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from genpool.cli.sentences import require_sentence_or_file
from genpool.disk.files import is_file
from genpool.errors import DataError

#: lines of each file that are encoded at a time
CHUNK_LINES = 1024


def similarity(
    first: Annotated[
        str, typer.Argument(metavar="A", help="A sentence, or a file with one per line.")
    ],
    second: Annotated[
        str, typer.Argument(metavar="B", help="The same as A; two files are compared line by line.")
    ],
    model: Annotated[
        Path | None, typer.Option(help="Folder of a model. Default: the embedded encoder.")
    ] = None,
) -> None:
    """Print the cosine of two sentences, or of the lines of two files.

    Example: genpool similarity "A man sleeps." "A person rests." --model runs/rules/best
    """
    for side in (first, second):
        require_sentence_or_file(side)
    files = [side for side in (first, second) if is_file(side)]
    if len(files) == 1:
        raise DataError(f"{files[0]} is a file and the other is not; expected two of one kind")
    from genpool.data.sentences import read_sentences
    from genpool.integrations.load_encoder import load_encoder

    encoder = load_encoder(model)
    if not files:
        typer.echo(f"{float(encoder.similarity(first, second)):.4f}")
        return
    sides = read_sentences(first), read_sentences(second)
    while True:
        left, right = (list(islice(side, CHUNK_LINES)) for side in sides)
        if len(left) != len(right):
            raise DataError(f"the two files have different numbers of lines: {first}, {second}")
        if not left:
            return
        for cosine in encoder.similarity(left, right).diagonal():
            typer.echo(f"{float(cosine):.4f}")

"""genpool explain"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from genpool.cli.sentences import refuse_file


def explain(
    sentence: Annotated[str, typer.Argument(help="The sentence to look into.")],
    model: Annotated[Path | None, typer.Option(help="Folder of a model.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Also write a page with coloured words.")
    ] = None,
) -> None:
    """Show what each head of the pooling looks at.

    Example: genpool explain "A man sleeps." --model runs/rules/best
    """
    from genpool import SentenceEncoder
    from genpool.disk.files import atomic_file

    refuse_file(sentence)
    explanation = SentenceEncoder.from_pretrained(model).explain(sentence)
    typer.echo(str(explanation))
    if html is not None:
        with atomic_file(html) as temporary:
            temporary.write_text(explanation.to_html(), encoding="utf-8")
        typer.echo(f"page: {html}")

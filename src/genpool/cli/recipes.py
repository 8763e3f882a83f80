"""genpool recipes, and genpool demo: what the package contains."""

from __future__ import annotations

from pathlib import Path

import typer
from typer import Argument

from genpool.errors import FolderError
from genpool.recipes import RECIPE_GROUPS, recipe_names, recipe_text, recipe_title

SENTENCES = [
    "A dog runs along the beach.",
    "An animal is moving quickly by the sea.",
    "The committee postponed its decision.",
]
PAIRS = [
    ("A dog runs along the beach.", "An animal is outside."),
    ("A dog runs along the beach.", "A dog is asleep."),
    ("A dog runs along the beach.", "A dog chases a ball."),
]
NEXT = """Next:
   genpool encode sentences.txt -o index/     vectors of a file, one sentence per line
   genpool search index/ "a question"         the sentences closest to it
   genpool serve                              the same in a browser, and over HTTP
   genpool recipes                            what can be trained, on your data or others'
   README.md                                  the same from Python, and much more"""

app = typer.Typer(invoke_without_command=True)


@app.callback(invoke_without_command=True)
def list_recipes(context: typer.Context) -> None:
    """List, show or copy the training recipes of the package.

    Example: genpool recipes
    """
    if context.invoked_subcommand is None:
        list_()


@app.command("list")
def list_() -> None:
    """List the recipes, as genpool recipes alone does.

    Example: genpool recipes list
    """
    width = max(map(len, recipe_names()))
    parts = []
    for group, names in RECIPE_GROUPS.items():
        lines = [f"  {name:{width}}  {recipe_title(name)}" for name in names]
        parts.append("\n".join([group, *lines]))
    typer.echo("\n\n".join(parts))


@app.command()
def show(name: str = Argument(help="A recipe of the list.")) -> None:
    """Print a recipe.

    Example: genpool recipes show snli
    """
    typer.echo(recipe_text(name), nl=False)


@app.command()
def copy(
    name: str = Argument(help="A recipe of the list."),
    path: Path = Argument(help="The file to write; it must not exist."),
) -> None:
    """Write a recipe to a file of your own, to change it.

    Example: genpool recipes copy snli my.toml
    """
    text = recipe_text(name)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise FolderError(f"{path} already exists; choose another name.") from None
    except OSError as error:
        raise FolderError(f"{path} cannot be written: {error.strerror}") from error
    typer.echo(f"{path}: now train with it: genpool train {path} --data ...")


def demo() -> None:
    """Encode, compare, explain and classify a few sentences with the embedded models.

    Example: genpool demo
    """
    import torch

    from genpool.model import PairClassifier, SentenceEncoder

    torch.set_num_threads(1)  # so few sentences gain nothing from a second thread
    encoder = SentenceEncoder.from_pretrained()

    typer.echo("1. Encode: one vector for each sentence\n")
    vectors = encoder.encode(SENTENCES)
    typer.echo(f"   {len(SENTENCES)} sentences -> {vectors.shape}\n")

    typer.echo("2. Compare: cosines\n")
    for sentence, row in zip(SENTENCES, encoder.similarity(vectors, vectors), strict=True):
        cosines = "  ".join(f"{float(cosine):5.2f}" for cosine in row)
        typer.echo(f"   {cosines}   {sentence}")

    typer.echo("\n3. Explain: which words matter, to the vector and to each head of the pooling\n")
    for line in str(encoder.explain(SENTENCES[0])).splitlines():
        typer.echo("   " + line)

    typer.echo("\n4. Classify: does the first sentence imply the second?\n")
    classifier = PairClassifier.from_pretrained()
    for premise, hypothesis in PAIRS:
        pair = classifier.explain(premise, hypothesis)
        if (prediction := pair.prediction) is not None:
            # The word of either side that speaks most for the label.
            one, other = (
                side.tokens[int(influence.argmax())].text
                for side, influence in zip(pair.sentences, prediction.influence, strict=True)
            )
            reason = f"{prediction.label}, because of {one!r} and {other!r}"
            typer.echo(f"   {premise}  ->  {hypothesis}  {reason}")
    typer.echo("\n" + NEXT)

"""genpool predict"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Argument, Option

from genpool.cli import options
from genpool.disk.files import is_folder, uncompressed_name
from genpool.errors import InputError, counted

if TYPE_CHECKING:
    from genpool import PairClassifier, TextClassifier
    from genpool.data import Reader
    from genpool.jobs.tables import TablePredictions


def predict(
    arguments: list[str] = Argument(
        metavar="[MODEL] DATA",
        help="DATA is a table (.tsv .csv .jsonl .parquet .xlsx, also compressed), a .txt file "
        "with one text per line, - for standard input, what --reader says, or a sentence in "
        "quotes (for pairs, two of them).",
    ),
    output: Path | None = Option(
        None,
        "-o",
        "--output",
        help="The .tsv, .csv, .jsonl or .parquet to write, with texts and probabilities. With "
        "--reader multinli a .csv is the file that its competition accepts. Default: standard "
        "output.",
    ),
    reader: options.ReaderName = "table",
    split: options.Split = None,
    first: options.First = None,
    second: options.Second = None,
    label: options.Label = None,
    encoding: options.Encoding = None,
    tokenized: options.Tokenized = False,
    settings: options.Settings = None,
    bad_rows: options.BadRows = "error",
    batch_size: int = Option(64, min=1, help="Rows per batch."),
    plugin: options.Plugin = None,
) -> None:
    """Predict the label of every row of a table, of every line, or of a sentence.

    Without MODEL, the embedded NLI classifier is used. Columns that are not named are those that
    the model was trained on, if DATA has them. Every row has its label, also where its text is
    empty.

    Example: genpool predict runs/rules/best pairs.tsv -o labels.tsv

    A sentence: genpool predict runs/films/best "I love this film."

    MultiNLI: genpool predict runs/multinli/best multinli_1.0 --reader multinli
    --split test_matched -o test_matched.csv
    """
    model, inputs = _split_arguments(arguments)
    if options.is_sentence(inputs[0]):
        if output is not None:
            raise InputError("-o is for a table or a file; the label of a sentence is printed.")
        _print_labels(model, inputs)
        return
    columns = {"first": first, "second": second, "label": label, "encoding": encoding}
    named = {**columns, "tokenized": tokenized}
    is_lines = inputs[0] == "-" or uncompressed_name(Path(inputs[0])).lower().endswith(".txt")
    if reader == "table" and is_lines:
        from genpool.data import LinesReader

        given = [f"--{name}" for name, value in {**named, "set": settings}.items() if value]
        if given:
            raise InputError(f"{', '.join(given)}: for tables; lines of text have no columns.")
        classifier = _load(model, output)
        is_pair = classifier.sentences_per_example == 2
        data: Reader = LinesReader(inputs[0], is_pair=is_pair, bad_rows=bad_rows)
    else:
        named["empty_texts"] = reader == "table"
        data = options.open_data(inputs[0], reader, False, bad_rows, settings, model, **named)
        split = data.choose_split(split)
        data.check(split)  # before the model is loaded, which takes longer
        classifier = _load(model, output)
    from genpool.jobs.tables import predict_table

    table = predict_table(classifier, data, batch_size, split)
    _write(output, table, data)
    options.report_skipped(data)
    if table.without_text:
        typer.echo(table.without_text_note, err=True)
    options.report_cut(classifier.text)


def _split_arguments(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Returns the folder of a model, None for the embedded one, and DATA or the sentences."""
    inputs = list(arguments)
    has_model = len(inputs) > 1 and (is_folder(inputs[0]) or not options.is_sentence(inputs[0]))
    model = inputs.pop(0) if has_model else None
    sentences = sum(map(options.is_sentence, inputs))
    if len(inputs) != 1 and sentences < len(inputs):
        raise InputError(
            f"got {len(arguments)} arguments; expected [MODEL] DATA, or [MODEL] and a sentence in "
            "quotes (for pairs, two)."
        )
    return model, inputs


def _load(model: str | None, output: Path | None = None) -> PairClassifier | TextClassifier:
    """Loads the classifier, after a look at the name of the output."""
    from genpool.jobs.tables import load_classifier, require_prediction_suffix

    if output is not None:
        require_prediction_suffix(output)
    return load_classifier(model)


def _print_labels(model: str | None, sentences: Sequence[str]) -> None:
    """Prints the labels of one text or pair, the most probable first."""
    classifier = _load(model)
    if len(sentences) != classifier.sentences_per_example:
        raise InputError(
            f"got {counted(len(sentences), 'sentence')}; the model takes "
            f"{classifier.sentences_per_example} at a time. Several are given as a table, as lines "
            "of a .txt file, or as lines of standard input: genpool predict MODEL -"
        )
    tokenized = [classifier.text.words(sentence) for sentence in sentences]
    rows = classifier.predict_tokenized([tokenized])  # (1, labels)
    if classifier.predicts_scores:
        typer.echo(f"score  {classifier.scores_of(rows)[0]:.4g}")
        return
    probabilities = rows[0]  # (labels,)
    width = max(map(len, classifier.labels))
    for at in probabilities.argsort()[::-1]:
        typer.echo(f"{classifier.labels[at]:<{width}}  {probabilities[at]:6.1%}")


def _write(output: Path | None, table: TablePredictions, data: Reader) -> None:
    predictions = table.predictions
    if output is None:
        typer.echo(table.tsv(), nl=False)
        return
    if output.suffix.lower() == ".csv" and data.write_submission is not None:
        data.write_submission(output, zip(predictions.ids, predictions.predicted, strict=True))
    else:
        table.write(output)
    typer.echo(f"{counted(len(predictions.ids), 'row')}: {output}")

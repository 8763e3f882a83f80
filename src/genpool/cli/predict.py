"""genpool predict"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genpool.cli.sentences import is_sentence
from genpool.cli.table_options import (
    BadRows,
    BadRowsOption,
    EncodingOption,
    FirstOption,
    LabelOption,
    ReaderName,
    ReaderOption,
    SecondOption,
    SettingsOption,
    SplitOption,
    TokenizedOption,
    open_data,
    report_skipped,
    report_without_text,
)
from genpool.disk.files import is_folder, uncompressed_name
from genpool.errors import InputError, counted

if TYPE_CHECKING:
    from genpool import PairClassifier, TextClassifier
    from genpool.data import Reader
    from genpool.jobs.tables import TablePredictions

SUBMISSION = ".csv"


def predict(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] DATA",
            help="DATA is a table (.tsv .csv .jsonl .parquet .xlsx, also compressed), a .txt file "
            "with one text per line, - for standard input, what --reader says, or a sentence in "
            "quotes (for pairs, two of them).",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The .tsv, .csv, .jsonl or .parquet to write, with texts and probabilities. With "
            "--reader multinli a .csv is the file that its competition accepts. Default: standard "
            "output.",
        ),
    ] = None,
    reader: ReaderOption = ReaderName.TABLE,
    split: SplitOption = None,
    first: FirstOption = None,
    second: SecondOption = None,
    label: LabelOption = None,
    encoding: EncodingOption = None,
    tokenized: TokenizedOption = False,
    settings: SettingsOption = None,
    bad_rows: BadRowsOption = BadRows.ERROR,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows per batch.")] = 64,
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
    if is_sentence(inputs[0]):
        if output is not None:
            raise InputError("-o is for a table or a file; the label of a sentence is printed.")
        _print_labels(model, inputs)
        return
    if output is not None:
        from genpool.jobs.tables import require_prediction_suffix

        require_prediction_suffix(output)
    columns = {"first": first, "second": second, "label": label, "encoding": encoding}
    table_options = {**columns, "tokenized": tokenized}
    if reader is ReaderName.TABLE and _is_lines(inputs[0]):
        _refuse_table_options(table_options, settings)
        classifier = _load(model)
        data = _open_lines(inputs[0], classifier, bad_rows)
    else:
        if reader is ReaderName.TABLE:
            table_options["empty_texts"] = True
        data = open_data(inputs[0], reader, False, bad_rows, settings, model, **table_options)
        split = data.choose_split(split)
        data.check(split)  # before the model is loaded, which takes longer
        classifier = _load(model)
    from genpool.jobs.tables import predict_table

    table = predict_table(classifier, data, batch_size, split)
    _write(output, table, data)
    report_skipped(data)
    report_without_text(table)
    if classifier.text.cut:
        typer.echo(f"maximum length {classifier.text.max_length}: {classifier.text.cut}", err=True)
    annotator = classifier.text.annotator
    if annotator is not None:
        typer.echo(f"{annotator.name}: {annotator.report()}", err=True)


def _split_arguments(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Returns the folder of a model, None for the embedded one, and DATA or the sentences."""
    inputs = list(arguments)
    has_model = len(inputs) > 1 and (is_folder(inputs[0]) or not is_sentence(inputs[0]))
    model = inputs.pop(0) if has_model else None
    sentences = sum(map(is_sentence, inputs))
    if len(inputs) != 1 and sentences < len(inputs):
        raise InputError(
            f"got {len(arguments)} arguments; expected [MODEL] DATA, or [MODEL] and a sentence in "
            "quotes (for pairs, two)."
        )
    return model, inputs


def _load(model: str | None) -> PairClassifier | TextClassifier:
    from genpool.jobs.tables import load_classifier

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


def _is_lines(data: str) -> bool:
    """Returns whether DATA has one text per line: standard input, or a text file."""
    return data == "-" or Path(uncompressed_name(Path(data))).suffix.lower() == ".txt"


def _refuse_table_options(options: dict[str, str | bool | None], settings: object) -> None:
    names = [f"--{name}" for name, value in options.items() if value]
    names += ["--set"] if settings else []
    if names:
        raise InputError(f"{', '.join(names)}: for tables; lines of text have no columns.")


def _open_lines(
    source: str, classifier: PairClassifier | TextClassifier, bad_rows: BadRows
) -> Reader:
    from genpool.data import LinesReader

    return LinesReader(
        source, is_pair=classifier.sentences_per_example == 2, bad_rows=str(bad_rows)
    )


def _write(output: Path | None, table: TablePredictions, data: Reader) -> None:
    predictions = table.predictions
    if output is None:
        from genpool.evaluation.predictions import prediction_lines

        for line in prediction_lines(predictions, table.further_columns):
            typer.echo(line, nl=False)
        return
    if output.suffix.lower() == SUBMISSION and data.write_submission is not None:
        data.write_submission(output, zip(predictions.ids, predictions.predicted, strict=True))
    else:
        table.write(output)
    typer.echo(f"{counted(len(predictions.ids), 'row')}: {output}")

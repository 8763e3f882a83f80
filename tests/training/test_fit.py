"""`TextClassifier.fit` and `PairClassifier.fit`: the loop of `genpool train` on rows in memory."""

from __future__ import annotations

import os
import signal
import tomllib
from typing import Any

import numpy as np
import pytest

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.errors import ConfigError, DataError, InputError
from genpool.recipes import recipe_text
from genpool.training import read_settings, train
from genpool.training.loop import Run
from tests.helpers.training_runs import Killed, reviews, stopping, write_table

ROWS = reviews(60, 0)
LABELS, TEXTS = [label for label, _ in ROWS], [text for _, text in ROWS]
SMALL = ("classifier.hidden_dim=6", "training.learning_rate=0.05", "training.encoder_rate=1.0")


@pytest.fixture
def fit(sentence_encoder: SentenceEncoder) -> Any:
    """fit(texts, labels, **options) with a small start model and few steps."""

    def run(texts: Any = TEXTS, labels: Any = LABELS, **options: Any) -> TextClassifier:
        usual = {"start": sentence_encoder, "epochs": 3, "batch_size": 8, "settings": SMALL}
        return TextClassifier.fit(texts, labels, **{**usual, "show_progress_bar": False, **options})

    return run


def test_it_returns_a_model_that_has_learned(fit):
    # Half of six hidden units dropped would leave too few of them.
    rates = ("training.learning_rate=0.02", "start.dropout=0.0", "classifier.dropout=0.0")
    model = fit(epochs=30, settings=(*SMALL, *rates))
    assert type(model) is TextClassifier
    assert not model.training
    assert model.labels == ("bad", "good")
    test = reviews(40, 9)
    predicted = model.predict([text for _, text in test])
    assert np.mean([one == label for one, (label, _) in zip(predicted, test, strict=True)]) > 0.9


def test_the_same_rows_in_a_table_give_the_same_weights(fit, sentence_encoder, tmp_path):
    sentence_encoder.save_pretrained(tmp_path / "start")
    table = write_table(tmp_path / "table.tsv", ROWS)
    overrides = [f"start.model={tmp_path / 'start'}", "training.epochs=3", "training.batch_size=8"]
    settings = read_settings(recipe_text("texts"), [*overrides, *SMALL])
    train(settings, table, tmp_path / "run", show_progress=False)
    from_table = TextClassifier.from_pretrained(tmp_path / "run" / "best").state_dict()
    for name, weight in fit().state_dict().items():
        np.testing.assert_array_equal(weight.numpy(), from_table[name].numpy(), err_msg=name)


def test_the_seed_decides_everything(fit):
    one, again, other = (fit(seed=seed).predict_proba(TEXTS) for seed in (4, np.int64(4), 5))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_start_model_and_folder_are_not_changed(fit, sentence_encoder, tmp_path, monkeypatch):
    before = {name: weight.clone() for name, weight in sentence_encoder.state_dict().items()}
    words = sentence_encoder.text.vocabulary.words
    monkeypatch.chdir(tmp_path)
    fit()
    assert list(tmp_path.iterdir()) == []
    assert sentence_encoder.text.vocabulary.words == words
    for name, weight in sentence_encoder.state_dict().items():
        assert weight.equal(before[name]), name


def test_a_folder_and_a_classifier_are_start_models_too(fit, sentence_encoder, tmp_path):
    sentence_encoder.save_pretrained(tmp_path / "start")
    expected = fit().predict_proba(TEXTS)
    classifier = PairClassifier(sentence_encoder, ("x", "y"))
    for start in (tmp_path / "start", str(tmp_path / "start"), classifier):
        np.testing.assert_array_equal(fit(start=start).predict_proba(TEXTS), expected)


@pytest.mark.skipif(os.name == "nt", reason="no such name of a folder on Windows")
@pytest.mark.parametrize("name", ["C:\\new", 'a "new" model', "\N{GRINNING FACE}"])
def test_any_name_of_a_start_folder_reaches_the_settings(fit, name, sentence_encoder, tmp_path):
    sentence_encoder.save_pretrained(tmp_path / name)
    fit(start=tmp_path / name, out=tmp_path / "run", epochs=1)
    config = tomllib.loads((tmp_path / "run" / "config.toml").read_text(encoding="utf-8"))
    assert config["start"]["model"] == str(tmp_path / name)


def test_the_model_inside_the_package_is_the_default():
    model = TextClassifier.fit(TEXTS[:20], LABELS[:20], epochs=1, show_progress_bar=False)
    own = SentenceEncoder.from_pretrained()
    words = own.text.vocabulary.words
    assert model.text.vocabulary.words[: len(words)] == words
    assert model.encoder.output_dim == own.output_dim


def test_new_weights_have_the_sizes_of_the_scratch_recipe_and_a_warning():
    sizes = ["embedding.word_dim=6", "encoder.hidden_dim=4", "pooling.hidden_dim=3"]
    model = TextClassifier.fit(
        TEXTS, LABELS, start="scratch", epochs=1, settings=sizes, show_progress_bar=False
    )
    assert model.settings.encoder.name == "stacked-bilstm"
    assert model.settings.encoder.options["hidden_dim"] == 4
    assert "54 training rows are few for new weights" in model.report.notes["warning"]


def test_a_tenth_is_held_out_and_said_unless_there_are_dev_rows(fit):
    report = fit().report
    assert (report.train_rows, report.dev.total) == (54, 6)
    assert report.notes["dev set"] == "6 rows held out of the training set"
    dev = reviews(10, 3)
    report = fit(dev=([text for _, text in dev], [label for label, _ in dev])).report
    assert (report.train_rows, report.dev.total) == (60, 10)
    assert "dev set" not in report.notes
    with pytest.raises(InputError, match=r"expected dev=\(texts, labels\)"):
        fit(dev=TEXTS)


@pytest.mark.parametrize("at_step", [2, 9])  # in the first epoch, or two steps after it
def test_ctrl_c_returns_the_best_model_so_far_and_says_so(fit, at_step, capsys):
    constant = (*SMALL, "training.schedule=constant")
    one_epoch = fit(epochs=1, settings=constant).predict_proba(TEXTS)
    with stopping(Run, "step", at_step, signal.SIGINT):
        model = fit(epochs=500, settings=constant)
    assert np.array_equal(model.predict_proba(TEXTS), one_epoch) == (at_step > 7)
    assert model.report.is_partial
    assert "stopped by Ctrl-C: the best model so far" in str(model.report)
    assert f"stopped at step {at_step}: the best model so far is kept" in capsys.readouterr().err


def test_the_signal_that_ends_programs_is_not_taken_for_ctrl_c(fit):
    def end(number: int, frame: object) -> None:
        raise Killed

    before = signal.signal(signal.SIGTERM, end)
    try:
        with stopping(Run, "step", 1, signal.SIGTERM), pytest.raises(Killed):
            fit(epochs=2)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_progress_is_shown_unless_it_is_turned_off(fit, capsys):
    fit(epochs=1)
    assert capsys.readouterr().err == ""
    fit(epochs=1, show_progress_bar=True)
    shown = capsys.readouterr().err
    assert "rows: train 54, dev 6" in shown
    assert "epoch 1: 54/54" in shown


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"labels": ["good"] * 60}, DataError, "all training rows have the label 'good'"),
        ({"labels": LABELS[:-1]}, InputError, "59"),
        ({"texts": [], "labels": []}, InputError, "there are no training rows"),
        ({"texts": ["a", "b"], "labels": ["x", "y"]}, DataError, "too few to take a dev share"),
        ({"freeze": "all"}, ConfigError, "start.freeze"),
        ({"task": "labels"}, InputError, "unknown task 'labels'. Did you mean 'label'"),
        ({"epochs": 0}, ConfigError, "training.epochs is 0"),
        ({"start": 3}, InputError, "start is a int"),
        ({"settings": ["training.speed=9"]}, ConfigError, "unknown setting 'training.speed'"),
        ({"dev": (TEXTS, ["x"] * 60)}, DataError, "the label 'x' appears in 'dev'"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(fit, options, error, problem):
    with pytest.raises(error, match=problem):
        fit(**options)


def test_scores_are_learned_from_pairs(sentence_encoder):
    scores = [5.0 if label == "good" else 0.5 for label in LABELS]
    pairs = [(text, "the film") for text in TEXTS]
    options: Any = {"task": "score", "start": sentence_encoder, "settings": SMALL, "epochs": 20}
    model = PairClassifier.fit(pairs, scores, batch_size=8, show_progress_bar=False, **options)
    assert model.labels == ("0", "1", "2", "3", "4", "5")
    predicted = model.predict_score(pairs)
    assert predicted.shape == (60,)
    assert np.corrcoef(predicted, scores)[0, 1] > 0.9
    assert 0 <= predicted.min() <= predicted.max() <= 5
    assert model.report.dev.spearman > 0.5


def test_a_notebook_shows_the_report_as_tables(fit):
    report = fit(labels=[label.replace("good", "<good>") for label in LABELS]).report
    text = report._repr_markdown_()
    assert text.count("\n|---") == 3
    assert "| &lt;good> |" in text
    assert "54 training rows" in text

"""Models on tables: predictions, accuracy, similarity and probes from files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from genpool import PairClassifier, SentenceEncoder
from genpool.errors import DataError
from genpool.evaluation import read_predictions
from genpool.jobs.tables import evaluate_probe, evaluate_similarity, predict_table
from tests.helpers.training_runs import write_table

WORDS = ("the", "a", "man", "dog", "sleeps", "rests", "runs", "red", "not", "two")
PAIRS = [
    ("neutral", "a dog runs", "the dog rests"),
    ("entailment", "two red dogs , not a man", "dog"),
    ("contradiction", "the man", "the man sleeps ."),
]


def write(path: Path, rows: Sequence[tuple[str, ...]], header: str) -> Path:
    return write_table(path, rows, header.split())


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write(tmp_path / "pairs.tsv", PAIRS, "label premise hypothesis")


def test_rows_are_predicted_in_order_with_their_gold_labels(pair_classifier, pairs):
    found = predict_table(pair_classifier, pairs, batch_size=2).predictions
    sides = [(first, second) for _, first, second in PAIRS]
    assert found.ids == ("0", "1", "2")
    assert found.gold == ("neutral", "entailment", "contradiction")
    assert list(found.predicted) == pair_classifier.predict(sides)
    assert found.labels == pair_classifier.labels
    expected = pair_classifier.predict_proba(sides)
    assert np.abs(np.array(found.probabilities) - expected).max() < 1e-6
    assert np.ptp(expected, axis=0).max() > 0.01  # or any order would do


def test_a_table_without_labels_is_predicted_but_not_scored(text_classifier, tmp_path):
    table = write(tmp_path / "texts.tsv", [("x7", "a dog"), ("x8", "the man")], "id text")
    found = predict_table(text_classifier, table)
    assert found.predictions.ids == ("x7", "x8")
    assert found.predictions.gold == (None, None)
    with pytest.raises(DataError, match=r"texts\.tsv: 2 of 2 rows have no label.* --label\)"):
        found.report()
    with pytest.raises(DataError, match=r"no column of labels.*this table has: 'id', 'text'"):
        predict_table(text_classifier, table, labelled=True)


def test_rows_without_a_gold_label_are_counted_and_not_scored(pair_classifier, tmp_path):
    sides = [(first, second) for _, first, second in PAIRS]
    right = pair_classifier.predict(sides)
    rows = [(label, *pair) for label, pair in zip(["", *right[1:]], sides, strict=True)]
    path = write(tmp_path / "pairs.tsv", rows, "label premise hypothesis")
    table = predict_table(pair_classifier, path)
    assert table.unlabelled == 1
    assert (table.report().correct, table.report().total) == (2, 2)
    assert list(table.predictions.predicted) == right


def test_tokenised_text_is_split_at_spaces_only(text_classifier, tmp_path):
    table = write(tmp_path / "t.tsv", [("dog. the-man",)], "text")
    plain = predict_table(text_classifier, table).predictions.probabilities
    tokenized = predict_table(text_classifier, table, tokenized=True).predictions.probabilities
    expected = text_classifier.predict_tokenized([[["dog.", "the-man"]]])
    assert np.abs(np.array(tokenized) - expected).max() < 1e-7
    assert np.abs(np.array(plain) - expected).max() > 1e-5


def test_the_texts_are_kept_and_rows_without_one_predicted_in_their_place(
    text_classifier, pair_classifier, pairs, tmp_path
):
    texts = ["a dog", "", "the man"]
    table = write(tmp_path / "t.tsv", [("neutral", text) for text in texts], "label text")
    found = predict_table(text_classifier, table)
    assert found.texts == {"text": texts}
    assert list(found.predictions.predicted) == text_classifier.predict(texts)
    assert (found.without_text, found.report().total) == (1, 3)
    _, firsts, seconds = zip(*PAIRS, strict=True)
    found = predict_table(pair_classifier, pairs)
    assert found.texts == {"first": [*firsts], "second": [*seconds]}


@pytest.fixture
def score_model(make_encoder) -> PairClassifier:
    model = PairClassifier(make_encoder(seed=5), ("0", "1", "2"))
    model.notes = {"task": "score"}
    return model.eval()


SCORED = [("0.5", "yes", "a dog runs", "the dog rests"), ("2", "no", "the man", "two dogs sleep")]
SCORED += [("1.25", "no", "not a man", "red"), ("", "no", "a man", "a man")]


def test_a_model_of_scores_predicts_scores_and_correlates_them(score_model, tmp_path):
    table = write(tmp_path / "scored.tsv", SCORED, "score label sentence1 sentence2")
    predicted = predict_table(score_model, table)
    probabilities = np.array(predicted.predictions.probabilities)
    expected = [row[1] + 2 * row[2] for row in probabilities]
    np.testing.assert_allclose(predicted.scores or [], expected, atol=1e-6)
    assert predicted.predictions.gold == ("0.5", "2", "1.25", None)  # not the labels beside them
    report = predicted.score_report().to_dict()
    assert report["total"] == 3
    gold = [0.5, 2, 1.25]
    assert report["pearson"] == pytest.approx(pearsonr(gold, expected[:3]).statistic, abs=1e-4)
    assert report["spearman"] == pytest.approx(spearmanr(gold, expected[:3]).statistic)


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "parquet"])
def test_scores_are_written_beside_the_labels(score_model, tmp_path, suffix):
    import pandas as pd

    table = write(tmp_path / "scored.tsv", SCORED, "score label sentence1 sentence2")
    predicted = predict_table(score_model, table)
    path = tmp_path / f"out.{suffix}"
    predicted.write(path)
    separator = {"sep": "\t"} if suffix == "tsv" else {"lines": True} if suffix == "jsonl" else {}
    kind = {"tsv": "csv", "jsonl": "json"}.get(suffix, suffix)
    frame = getattr(pd, f"read_{kind}")(path, **separator)
    assert list(frame.columns[:6]) == ["id", "gold", "predicted", "score", "first", "second"]
    np.testing.assert_allclose(frame["score"], predicted.scores or [], rtol=1e-6)
    if suffix == "tsv":
        assert read_predictions(path).gold == predicted.predictions.gold


def scored_rows(encoder: SentenceEncoder, count: int, seed: int) -> list[tuple[str, ...]]:
    """Pairs whose score is their cosine and some noise."""
    chance = random.Random(seed)
    rows: list[tuple[str, ...]] = []
    for _ in range(count):
        first, second = (" ".join(chance.choices(WORDS, k=chance.randint(1, 5))) for _ in "ab")
        cosine = float(encoder.similarity(first, second))
        rows.append((f"{cosine + chance.gauss(0, 0.02):.6f}", first, second))
    return rows


def test_the_cosine_is_correlated_with_the_scores_of_a_table(sentence_encoder, tmp_path):
    rows = scored_rows(sentence_encoder, 30, seed=0)
    table = write(tmp_path / "sts.tsv", rows, "score sentence1 sentence2")
    report, regression = evaluate_similarity(sentence_encoder, table)
    cosines = [float(sentence_encoder.similarity(first, second)) for _, first, second in rows]
    scores = [float(score) for score, _, _ in rows]
    assert report.total == 30
    assert report.pearson == pytest.approx(pearsonr(scores, cosines).statistic, abs=1e-5)
    assert report.spearman == pytest.approx(spearmanr(scores, cosines).statistic, abs=1e-5)
    assert regression is None


def test_of_a_folder_test_is_scored_and_train_is_for_the_regression(sentence_encoder, tmp_path):
    for seed, (name, count) in enumerate({"train": 60, "dev": 10, "test": 20}.items()):
        rows = scored_rows(sentence_encoder, count, seed)
        write(tmp_path / f"{name}.tsv", rows, "relatedness sentence1 sentence2")
    report, regression = evaluate_similarity(sentence_encoder, tmp_path)
    assert report.total == 20
    assert regression is not None
    assert regression.total == 20
    assert regression.pearson > 0.5


def test_a_table_that_does_not_suit_the_model_is_told(
    sentence_encoder, text_classifier, pair_classifier, score_model, pairs, tmp_path
):
    with pytest.raises(DataError, match=r"rows have 2 sentences; the model takes 1"):
        predict_table(text_classifier, pairs)
    table = write(tmp_path / "p.tsv", [("maybe", "a", "b")], "label premise hypothesis")
    with pytest.raises(DataError, match=r"the labels maybe are not among the model's: entailment"):
        predict_table(pair_classifier, table)
    with pytest.raises(DataError, match="without a score or a second sentence"):
        evaluate_similarity(sentence_encoder, pairs)
    with pytest.raises(DataError, match=r"no row has a score.*--score"):
        predict_table(score_model, pairs).score_report()
    table = write(tmp_path / "t.tsv", [("1", "a dog")], "score text")
    with pytest.raises(DataError, match=r"rows without a label; .* label= "):
        evaluate_probe(sentence_encoder, table)


def test_tokenised_sentences_are_encoded_as_they_are_split(sentence_encoder, tmp_path):
    rows = scored_rows(sentence_encoder, 12, seed=3)
    glued = [(score, f"{first}, dog", second) for score, first, second in rows]
    table = write(tmp_path / "glued.tsv", glued, "score sentence1 sentence2")
    split, _ = evaluate_similarity(sentence_encoder, table)
    kept, _ = evaluate_similarity(sentence_encoder, table, tokenized=True)
    # "sleeps," is two tokens as text, and one unknown word as it stands.
    assert split.pearson != kept.pearson


def dog_or_man(count: int, seed: int) -> list[tuple[str, ...]]:
    """A word decides: what the vectors of any encoder still tell."""
    words = random.Random(seed).choices(("the", "a", "red"), k=count)
    labels = [("dog", "man")[number % 2] for number in range(count)]
    return [(label, f"{word} {label}") for word, label in zip(words, labels, strict=True)]


def test_a_table_is_cross_validated_and_a_folder_probed_on_its_test_table(
    sentence_encoder, tmp_path
):
    table = write(tmp_path / "all.tsv", dog_or_man(40, 0), "label text")
    (tmp_path / "folder").mkdir()
    for seed, (name, count) in enumerate({"train": 24, "dev": 8, "test": 6}.items()):
        write(tmp_path / "folder" / f"{name}.tsv", dog_or_man(count, seed), "label text")
    for data, total, fits in ((table, 40, 10), (tmp_path / "folder", 6, 1)):
        report = evaluate_probe(sentence_encoder, data)
        assert (report.accuracy.total, len(report.chosen_c)) == (total, fits)
        assert report.accuracy.accuracy == 1.0


def test_pairs_are_probed_on_the_features_of_both_sides(sentence_encoder, tmp_path):
    chance = random.Random(0)
    for name, count in {"train": 60, "test": 20}.items():
        sides = [chance.choices(("dog", "man"), k=2) for _ in range(count)]
        rows = [("same" if first == second else "other", first, second) for first, second in sides]
        write(tmp_path / f"{name}.tsv", rows, "label premise hypothesis")
    report = evaluate_probe(sentence_encoder, tmp_path)
    assert report.accuracy.total == 20
    assert report.accuracy.accuracy == 1.0

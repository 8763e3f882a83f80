"""The models inside the package: what they are, how large, and that they are good."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.embedded import embedded_folder
from genpool.errors import FolderError, InputError
from genpool.evaluation import similarity_report
from genpool.inference.quick_encoder import QuickEncoder
from genpool.jobs.tables import evaluate_similarity, predict_table
from genpool.pooling import GeneralizedPooling

DATA = Path(os.environ.get("GENPOOL_DATA", "../shared/data"))
needs_data = pytest.mark.skipif(
    not (DATA / "stsb").is_dir(), reason=f"no data sets in {DATA} (GENPOOL_DATA says where)"
)
MEGABYTE = 1e6


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder.from_pretrained()


@pytest.fixture(scope="module")
def classifier() -> PairClassifier:
    return PairClassifier.from_pretrained()


def test_it_is_a_bilstm_with_generalized_pooling_and_a_general_vocabulary(encoder) -> None:
    assert encoder.settings.encoder.name == "bilstm"
    assert isinstance(encoder.pooling, GeneralizedPooling)
    assert len(encoder.text.vocabulary) >= 30_000
    assert encoder.output_dim == 384


def test_all_of_it_is_within_25_megabytes() -> None:
    root = embedded_folder("SentenceEncoder").parent
    total = sum(each.stat().st_size for each in root.rglob("*") if each.is_file())
    assert total < 25 * MEGABYTE


def test_close_sentences_are_close(encoder) -> None:
    close = encoder.similarity("A man is eating food.", "Somebody eats a meal.")
    far = encoder.similarity("A man is eating food.", "The stock market fell sharply today.")
    assert float(close) > 0.5 > float(far) + 0.2


def test_inference_forms_agree(encoder) -> None:
    sentences = ["A man is eating food.", "", "Zyzzyvas, 1234 of them!", "It's 5 o'clock."]
    plain = encoder.encode(sentences)
    assert np.abs(QuickEncoder(encoder).encode(sentences) - plain).max() < 1e-5
    assert not plain[1].any()


def test_a_cut_vector_is_its_beginning(encoder) -> None:
    whole = encoder.encode(["A man is eating food."])
    cut = encoder.encode(["A man is eating food."], truncate_dim=64)
    assert np.array_equal(cut, whole[:, :64])
    unit = encoder.encode("A man is eating food.", truncate_dim=64, normalize_embeddings=True)
    assert np.linalg.norm(unit) == pytest.approx(1.0, abs=1e-6)
    for wrong in (0, 385):
        with pytest.raises(InputError, match="expected 1 to 384"):
            encoder.encode(["x"], truncate_dim=wrong)


def test_pairs_are_classified(classifier) -> None:
    premise = "A man is playing a guitar on stage."
    pairs = [(premise, "A man is playing music."), (premise, "A man is sleeping.")]
    assert classifier.predict(pairs) == ["entailment", "contradiction"]


def test_there_is_no_text_classifier_inside() -> None:
    with pytest.raises(FolderError, match="no pretrained TextClassifier"):
        TextClassifier.from_pretrained()


def test_the_cards_tell_where_the_models_come_from() -> None:
    for kind in ("SentenceEncoder", "PairClassifier"):
        card = (embedded_folder(kind) / "README.md").read_text(encoding="utf-8")
        assert "SNLI" in card and "recipe" in card and "test" in card


@needs_data
def test_the_figures_of_the_card_are_true(encoder) -> None:
    card = (embedded_folder("SentenceEncoder") / "README.md").read_text(encoding="utf-8")
    for table, least in (("stsb", 0.78), ("sick", 0.75)):
        report, _ = evaluate_similarity(encoder, DATA / table / "test.tsv.xz")
        assert report.spearman >= least
        assert any(abs(float(each) - report.spearman) < 5e-4 for each in numbers_of(card))


@needs_data
def test_a_third_of_the_numbers_does_nearly_as_well(encoder) -> None:
    rows = pairs_of(DATA / "stsb" / "dev.tsv.xz")
    scores, first, second = ([row[side] for row in rows] for side in range(3))
    found = [
        similarity_report(
            scores,
            encoder.encode(first, truncate_dim=width),
            encoder.encode(second, truncate_dim=width),
        ).spearman
        for width in (384, 128)
    ]
    assert found[1] > found[0] - 0.02


@needs_data
def test_the_accuracy_of_the_card_is_true(classifier) -> None:
    table = predict_table(classifier, DATA / "snli" / "test.tsv.xz", tokenized=True)
    card = (embedded_folder("PairClassifier") / "README.md").read_text(encoding="utf-8")
    accuracy = 100 * table.report().accuracy
    assert any(abs(float(each) - accuracy) < 0.05 for each in numbers_of(card))


def numbers_of(card: str) -> list[str]:
    """The numbers of a card that have a fraction."""
    return re.findall(r"\d+\.\d+", card)


def pairs_of(file: Path) -> list[tuple[float, str, str]]:
    from genpool.data import TableReader

    reader = TableReader(file)
    return [
        (float(each.score or 0), each.first, str(each.second))
        for each in reader.read(reader.splits()[0])
    ]

"""The models inside the package: what they are, how large, and that they are good."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier, SentenceEncoder
from genpool.errors import FolderError, InputError
from genpool.evaluation import similarity_report
from genpool.inference.quick import QuickEncoder
from genpool.jobs.tables import evaluate_similarity, predict_table
from genpool.model import load_model
from genpool.pooling import GeneralizedPooling
from genpool.saving.storage import embedded_folder
from tests.helpers.shared_data import shared_data

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
    assert len(encoder.text.vocabulary) >= 100_000
    assert encoder.output_dim == 384


def test_all_of_it_is_within_25_megabytes() -> None:
    root = embedded_folder("SentenceEncoder").parent
    total = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
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
    complete = encoder.encode(["A man is eating food."])
    cut = encoder.encode(["A man is eating food."], truncate_dim=64)
    assert np.array_equal(cut, complete[:, :64])
    unit = encoder.encode("A man is eating food.", truncate_dim=64, normalize_embeddings=True)
    assert np.linalg.norm(unit) == pytest.approx(1.0, abs=1e-6)
    for wrong in (0, 385):
        with pytest.raises(InputError, match="expected 1 to 384"):
            encoder.encode(["x"], truncate_dim=wrong)


def test_pairs_are_classified(classifier) -> None:
    premise = "A man is playing a guitar on stage."
    pairs = [(premise, "A man is playing music."), (premise, "A man is sleeping.")]
    assert classifier.predict(pairs) == ["entailment", "contradiction"]


def test_two_words_that_changed_their_ids_are_noticed(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(embedded_folder("SentenceEncoder"), tmp_path / "copy"))
    assert load_model(folder).text.max_length == 256
    path = folder / "tokenizer.json"
    text = path.read_text(encoding="utf-8")
    ids = json.loads(text)["model"]["vocab"]
    other = {"dog": ids["man"], "man": ids["dog"]}
    swapped = re.sub(
        r'"(dog|man)":( ?)\d+', lambda found: f'"{found[1]}":{found[2]}{other[found[1]]}', text
    )
    assert json.loads(swapped)["model"]["vocab"] == ids | {"dog": ids["man"], "man": ids["dog"]}
    path.write_text(swapped, encoding="utf-8", newline="\n")
    with pytest.raises(FolderError, match="do not belong together: the checksum of tokenizer"):
        load_model(folder)


@pytest.mark.slow
def test_the_figures_of_the_card_are_true(encoder) -> None:
    card = (embedded_folder("SentenceEncoder") / "README.md").read_text(encoding="utf-8")
    for table, minimum in (("stsb", 0.80), ("sick", 0.765)):
        report, _ = evaluate_similarity(encoder, shared_data(f"{table}/test.tsv.xz"))
        assert report.spearman >= minimum
        assert any(abs(float(figure) - report.spearman) < 5e-4 for figure in figures_of(card))


@pytest.mark.slow
def test_a_third_of_the_dimensions_is_nearly_as_good(encoder) -> None:
    rows = pairs_of(shared_data("stsb/dev.tsv.xz"))
    scores, first, second = ([row[side] for row in rows] for side in range(3))
    correlations = [
        similarity_report(
            scores,
            encoder.encode(first, truncate_dim=dim),
            encoder.encode(second, truncate_dim=dim),
        ).spearman
        for dim in (384, 128)
    ]
    assert correlations[1] > correlations[0] - 0.02


@pytest.mark.slow
def test_the_accuracy_of_the_card_is_true(classifier) -> None:
    table = predict_table(classifier, shared_data("snli/test.tsv.xz"), tokenized=True)
    card = (embedded_folder("PairClassifier") / "README.md").read_text(encoding="utf-8")
    accuracy = 100 * table.report().accuracy
    assert any(abs(float(figure) - accuracy) < 0.05 for figure in figures_of(card))


def figures_of(card: str) -> list[str]:
    """Returns the decimal fractions of a card."""
    return re.findall(r"\d+\.\d+", card)


def pairs_of(file: Path) -> list[tuple[float, str, str]]:
    from genpool.data import TableReader

    reader = TableReader(file)
    return [
        (float(example.score or 0), example.first, str(example.second))
        for example in reader.read(reader.splits()[0])
    ]

"""A genpool encoder as a model of sentence-transformers, and so of SetFit and MTEB."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize

from genpool import PairClassifier, SentenceEncoder
from genpool.errors import FolderError
from genpool.integrations.sentence_transformers import SentenceEncoderModule, load
from tests.integrations.tiny_bert import SENTENCES, encode_features

MANY = [*SENTENCES, "", "Two men run.", "An unseen word.", "The red dog, the man, two dogs ."] * 3


@pytest.fixture
def folder(sentence_encoder: SentenceEncoder, tmp_path: Path) -> Path:
    sentence_encoder.save_pretrained(tmp_path / "genpool")
    return tmp_path / "genpool"


def optional(name: str) -> ModuleType:
    """A package that no extra of genpool brings; importing it may warn of its own affairs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed")


def test_a_genpool_folder_gives_the_same_vectors(
    sentence_encoder: SentenceEncoder, folder: Path
) -> None:
    model: SentenceTransformer = load(folder)
    assert isinstance(model, SentenceTransformer)
    assert model.model_card_data.model_name == f"{folder.parent.name}/{folder.name}"
    np.testing.assert_allclose(
        model.encode(MANY, batch_size=5), sentence_encoder.encode(MANY), atol=1e-5
    )
    assert model.get_embedding_dimension() == sentence_encoder.output_dim


def test_a_classifier_gives_its_encoder(pair_classifier: PairClassifier, tmp_path: Path) -> None:
    pair_classifier.save_pretrained(tmp_path / "pairs")
    model: SentenceTransformer = load(tmp_path / "pairs")
    np.testing.assert_allclose(model.encode(MANY), pair_classifier.encoder.encode(MANY), atol=1e-5)


def test_without_a_path_it_is_the_encoder_inside() -> None:
    model: SentenceTransformer = load()
    actual = model.encode(["A man sleeps."])
    assert model.model_card_data.model_name == "genpool/embedded"
    expected = SentenceEncoder.from_pretrained().encode(["A man sleeps."])
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_prompts_stand_before_the_sentences(
    sentence_encoder: SentenceEncoder, folder: Path
) -> None:
    model: SentenceTransformer = load(folder, prompts={"query": "the dog "})
    actual = model.encode_query(SENTENCES)
    expected = sentence_encoder.encode(["the dog " + sentence for sentence in SENTENCES])
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_a_maximum_length_cuts(sentence_encoder: SentenceEncoder, folder: Path) -> None:
    model: SentenceTransformer = load(folder)
    model.max_seq_length = 2
    expected = sentence_encoder.encode(["a man"])
    np.testing.assert_allclose(model.encode(["a man sleeps, not"]), expected, atol=1e-5)


def test_it_comes_back_inside_a_folder_of_theirs(
    sentence_encoder: SentenceEncoder, tmp_path: Path
) -> None:
    module = SentenceEncoderModule(sentence_encoder, write_weights=True)
    model = SentenceTransformer(modules=[module, Normalize()])
    for _ in range(2):  # saving over an earlier one works too
        model.save(str(tmp_path / "saved"))
    actual: SentenceTransformer = load(tmp_path / "saved")
    np.testing.assert_allclose(actual.encode(MANY), model.encode(MANY), atol=1e-6)
    normalized = sentence_encoder.encode(MANY, normalize_embeddings=True)
    np.testing.assert_allclose(actual.encode(MANY), normalized, atol=1e-5)
    loaded = actual[0]
    assert isinstance(loaded, SentenceEncoderModule) and loaded.write_weights is True
    config = json.loads((tmp_path / "saved" / "config_sentence_transformers.json").read_text())
    assert "genpool" in config["requirements"]
    inner = SentenceEncoder.from_pretrained(tmp_path / "saved" / "0_SentenceEncoderModule")
    np.testing.assert_allclose(inner.encode(MANY), sentence_encoder.encode(MANY), atol=1e-6)


def test_weights_are_written_where_asked(sentence_encoder: SentenceEncoder) -> None:
    module = SentenceEncoderModule(sentence_encoder, write_weights=True)
    actual = encode_features(SentenceTransformer(modules=[module]), SENTENCES[:1])[0]
    weights = actual["head_weights"]  # (heads, time, dim)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(2, weights.shape[2]))
    assert actual["head_vectors"].shape == (2, weights.shape[2])


def test_a_genpool_folder_with_a_pickle_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FolderError, match="is a pickle, which genpool never opens"):
        load(folder)


@pytest.mark.filterwarnings("ignore::FutureWarning:setfit")
def test_setfit_fits_a_head_on_it(folder: Path) -> None:
    setfit = optional("setfit")
    linear = optional("sklearn.linear_model")
    model = setfit.SetFitModel(model_body=load(folder), model_head=linear.LogisticRegression())
    texts = ["a man sleeps", "the man rests", "two dogs , red", "red , red dog"]
    labels = [0, 0, 1, 1]
    model.fit(texts, labels, num_epochs=1)
    assert np.asarray(model.predict(texts)).tolist() == labels
    vectors = SentenceEncoder.from_pretrained(folder).encode(texts)
    by_hand = linear.LogisticRegression().fit(vectors, labels).predict_proba(vectors)
    np.testing.assert_allclose(np.asarray(model.predict_proba(texts)), by_hand, atol=1e-4)


# MTEB calls names of sentence-transformers, and of its own, that are on their way out.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_mteb_scores_it(folder: Path) -> None:
    mteb = optional("mteb")
    task = optional("mteb.mocks.mock_tasks").MockSTSTask()
    # Without the empty sentence, whose zeros have a cosine of 0 here and of 0.5 in MTEB.
    first = [sentence for sentence in MANY[:7] if sentence]
    second, scores = first[1:] + first[:1], [0.1, 0.9, 0.3, 0.4, 0.2, 0.6]
    rows = {"sentence1": first, "sentence2": second, "score": scores}
    task.dataset = DatasetDict(test=Dataset.from_dict(rows))
    task.data_loaded = True
    model: SentenceTransformer = load(folder)
    actual = mteb.evaluate(model, [task], cache=None, show_progress_bar=False, co2_tracker=False)
    encoder = SentenceEncoder.from_pretrained(folder)
    cosines = encoder.similarity(first, second).diagonal().detach().numpy()
    result = actual.task_results[0].scores["test"][0]
    assert result["cosine_spearman"] == pytest.approx(spearmanr(cosines, scores).statistic)

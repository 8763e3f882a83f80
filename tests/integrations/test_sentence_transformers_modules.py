"""The modules for sentence-transformers: values, masks, prompts, heads, and genpool's encoders."""

import json
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from scipy.stats import spearmanr
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn

from genpool import PairClassifier, SentenceEncoder
from genpool.errors import InputError
from genpool.integrations.sentence_transformers import (
    HeadVectors,
    PoolingModule,
    SentenceEncoderModule,
    load,
)
from genpool.pooling import GatedPooling, GeneralizedPooling
from tests.helpers.gradients import gradient
from tests.helpers.small_indexes import unit
from tests.integrations.tiny_bert import (
    SENTENCES,
    WIDTH,
    encode_features,
    heads_by_loops,
    lively_pooling,
    minilm_folder,
    tiny_transformer,
)

LENGTHS = (4, 2, 6)


def sentences() -> list[Tensor]:
    random = torch.Generator().manual_seed(2)
    return [torch.randn(length, WIDTH, generator=random) for length in LENGTHS]


def padded(side: str = "right", more: int = 1) -> dict[str, Tensor]:
    time = max(LENGTHS) + more
    states = torch.full((len(LENGTHS), time, WIDTH), float("nan"))
    mask = torch.zeros(len(LENGTHS), time, dtype=torch.long)
    for row, sentence in enumerate(sentences()):
        place = slice(0, len(sentence)) if side == "right" else slice(time - len(sentence), time)
        states[row, place], mask[row, place] = sentence, 1
    return {"token_embeddings": states, "attention_mask": mask}


def end_to_end() -> dict[str, Tensor]:
    starts = torch.tensor([0, *LENGTHS]).cumsum(0).int()
    return {"token_embeddings": torch.cat(sentences()).unsqueeze(0), "cu_seq_lens_q": starts}


def expected(module: PoolingModule, skip: int = 0) -> np.ndarray:
    return np.stack([heads_by_loops(sentence[skip:], module) for sentence in sentences()])


@pytest.mark.parametrize(
    ("features", "write_weights"),
    [(padded("right"), True), (padded("left"), False), (end_to_end(), True), (end_to_end(), False)],
    ids=["right", "left", "flat", "flat without weights"],
)
def test_heads_are_those_of_the_equations(features: dict[str, Tensor], write_weights: bool) -> None:
    module = lively_pooling(write_weights=write_weights)
    result = module(dict(features))
    heads = result["head_vectors"].detach().numpy()
    np.testing.assert_allclose(heads, expected(module), atol=1e-5)
    vectors = result["sentence_embedding"].detach().numpy()
    np.testing.assert_array_equal(vectors, heads.reshape(len(LENGTHS), 3 * WIDTH))
    assert ("head_weights" in result) is write_weights


def test_gradients_are_the_same_end_to_end_and_padded() -> None:
    actual = []
    for features in (padded(), end_to_end()):
        states = features["token_embeddings"].nan_to_num().requires_grad_()
        module = lively_pooling()
        result = module({**features, "token_embeddings": states})
        result["sentence_embedding"].sin().sum().backward()
        real = features.get("attention_mask", torch.ones(states.shape[:2])).bool()
        actual.append((gradient(states)[real], gradient(module.pooling.get_parameter("w1"))))
    torch.testing.assert_close(actual[0], actual[1])
    assert all(result.abs().max() > 1e-3 for result in actual[0])


@pytest.mark.parametrize(
    ("form", "length"),
    [("right", 2), ("left", torch.tensor([2])), ("flat", torch.tensor([2, 2, 2]))],
)
def test_a_prompt_is_left_out_when_asked(form: str, length: int | Tensor) -> None:
    features: dict[str, Any] = end_to_end() if form == "flat" else padded(form)
    features["prompt_length"] = length
    kept = lively_pooling()(dict(features))["head_vectors"].detach()
    np.testing.assert_allclose(kept, expected(lively_pooling()), atol=1e-5)
    left_out = lively_pooling(include_prompt=False)(dict(features))["head_vectors"].detach()
    np.testing.assert_allclose(left_out, expected(lively_pooling(), skip=2), atol=1e-5)
    assert not left_out[1].any(), "of the second sentence, no token is left"
    if form != "flat":  # as their own mean pooling does
        features["token_embeddings"] = features["token_embeddings"].nan_to_num()
        mean = PoolingModule(GeneralizedPooling(WIDTH, 1, start="mean"), include_prompt=False)
        features["prompt_length"] = 1  # of no sentence all tokens, whose mean is NaN there
        theirs = Pooling(WIDTH, "mean", include_prompt=False)(dict(features))
        ours = mean(dict(features))["sentence_embedding"]
        torch.testing.assert_close(ours, theirs["sentence_embedding"])


def test_the_mask_is_never_changed_and_not_used_if_it_is_of_other_tokens() -> None:
    for dtype in (torch.long, torch.bool):
        features: dict[str, Any] = {**padded(), "prompt_length": 2}
        given = features["attention_mask"] = features["attention_mask"].to(dtype)
        before = given.clone()
        result = lively_pooling(include_prompt=False)(features)
        assert result["attention_mask"] is given and torch.equal(given, before)
    # Some models shorten the sequence; then all of what is left is pooled.
    states = torch.stack([sentence[:2] for sentence in sentences()])  # (3, 2, WIDTH)
    module, mask = lively_pooling(), torch.tensor([[1, 0, 0, 0]] * 3)
    alone = module({"token_embeddings": states})["sentence_embedding"]
    both = module({"token_embeddings": states, "attention_mask": mask})["sentence_embedding"]
    assert torch.equal(alone, both)


def test_encode_gives_heads_and_weights_of_every_sentence(tmp_path: Path) -> None:
    model = SentenceTransformer(modules=[tiny_transformer(tmp_path / "bert"), lively_pooling()])
    vectors = model.encode(SENTENCES, batch_size=2)
    actual = encode_features(model, SENTENCES, batch_size=2)
    for vector, result in zip(vectors, actual, strict=True):
        time = len(result["attention_mask"])
        assert result["head_vectors"].shape == (3, WIDTH)
        assert result["head_weights"].shape == (3, time, WIDTH)
        by_hand = (result["head_weights"] * result["token_embeddings"]).sum(dim=1).flatten()
        np.testing.assert_allclose(vector, by_hand, atol=1e-5)
    alone = np.stack([model.encode(sentence) for sentence in SENTENCES])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    assert model.get_embedding_dimension() == vectors.shape[1] == 3 * WIDTH


def test_the_start_at_the_mean_changes_no_cosine_of_minilm() -> None:
    folder = minilm_folder()
    sentences = [*SENTENCES, "Where is the station?", "", "A person is resting on a bench."]
    transformer = Transformer(folder)
    mean = SentenceTransformer(modules=[transformer, Pooling(384, "mean")])
    theirs = mean.encode(sentences, convert_to_tensor=True)
    cosines = mean.similarity(theirs, theirs)
    for heads in (1, 5):
        pooling = PoolingModule(GeneralizedPooling(384, heads, 64, start="mean"))
        model = SentenceTransformer(modules=[transformer, pooling])
        ours = model.encode(sentences, convert_to_tensor=True)
        torch.testing.assert_close(ours, theirs.repeat(1, heads), atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(model.similarity(ours, ours), cosines, atol=1e-6, rtol=0)


def test_half_precision_follows_the_transformer(tmp_path: Path) -> None:
    transformer = tiny_transformer(tmp_path / "bert")
    single = SentenceTransformer(modules=[transformer, lively_pooling()]).encode(SENTENCES)
    model = SentenceTransformer(modules=[transformer.bfloat16(), lively_pooling()])
    vectors = model.encode(SENTENCES, convert_to_tensor=True)
    assert vectors.dtype is torch.bfloat16
    np.testing.assert_allclose(vectors.float().numpy(), single, atol=0.1)


def test_wrong_arguments_are_answered_in_words() -> None:
    with pytest.raises(InputError, match="the pooling is GatedPooling; expected one"):
        PoolingModule(GatedPooling(WIDTH))
    with pytest.raises(InputError, match="expected token_embeddings: put this module after"):
        lively_pooling()({"input_ids": torch.zeros(1, 2)})
    with pytest.raises(InputError, match="states have width 8"):
        lively_pooling()({"token_embeddings": torch.zeros(1, 2, 8)})
    with pytest.raises(InputError, match=r"expected \(batch, heads, 16\): put this module after"):
        HeadVectors(WIDTH)({"token_embeddings": torch.zeros(1, 2, WIDTH)})


# --- heads as the vectors of a sentence, for late interaction


@pytest.fixture
def model(tmp_path: Path) -> MultiVectorEncoder:
    modules: list[nn.Module] = [
        tiny_transformer(tmp_path / "bert"),
        lively_pooling(),
        HeadVectors(WIDTH),
    ]
    return MultiVectorEncoder(modules=modules)


def maxsim(query: np.ndarray, document: np.ndarray) -> float:
    """For every vector of the query, the best of the document's."""
    return sum(max(float(a @ b) for b in document) for a in query)


def test_every_sentence_has_one_vector_per_head(
    model: MultiVectorEncoder, sentence_encoder: SentenceEncoder, folder: str
) -> None:
    pooled = SentenceTransformer(modules=list(model)[:2]).encode(SENTENCES)
    heads = pooled.reshape(len(SENTENCES), 3, WIDTH)
    actual = model.encode_document(SENTENCES, convert_to_numpy=True)
    np.testing.assert_allclose(np.array(actual), unit(heads), atol=1e-5)
    assert model.get_embedding_dimension() == WIDTH
    loaded = load(folder, MultiVectorEncoder)  # a folder of genpool has its heads too
    actual = loaded.encode_document(SENTENCES, convert_to_numpy=True)
    heads = np.asarray(sentence_encoder.encode(SENTENCES)).reshape(len(SENTENCES), 2, -1)
    np.testing.assert_allclose(np.array(actual), unit(heads), atol=1e-5)


def test_maxsim_compares_the_heads_of_a_saved_model(
    model: MultiVectorEncoder, tmp_path: Path
) -> None:
    queries = model.encode_query(SENTENCES[:2])
    documents = model.encode_document(SENTENCES)
    scores = model.similarity(queries, documents)
    by_hand = [[maxsim(a.numpy(), b.numpy()) for b in documents] for a in queries]
    np.testing.assert_allclose(scores.numpy(), by_hand, atol=1e-5)
    assert scores.argmax(dim=1).tolist() == [0, 1], "a sentence is nearest to itself"
    model.save(str(tmp_path / "saved"))
    loaded = load(tmp_path / "saved", MultiVectorEncoder)
    for ours, theirs in zip(loaded.encode_document(SENTENCES), documents, strict=True):
        assert torch.equal(ours, theirs)


def test_lengths_are_kept_where_asked_and_the_features_are_not_changed() -> None:
    heads, mask = torch.randn(2, 3, WIDTH), torch.ones(2, 7)
    features = {"head_vectors": heads, "attention_mask": mask, "cu_seq_lens_q": torch.arange(3)}
    result = HeadVectors(WIDTH, normalize=False)(features)
    assert torch.equal(result["token_embeddings"], heads)
    assert result["attention_mask"].shape == (2, 3) and "cu_seq_lens_q" not in result
    assert features["attention_mask"] is mask and "token_embeddings" not in features


# --- a genpool encoder as a model of sentence-transformers, and so of SetFit and MTEB

MANY = [*SENTENCES, "", "Two men run.", "An unseen word.", "The red dog, the man, two dogs ."] * 3


def optional(name: str) -> ModuleType:
    """A package that no extra of genpool brings; importing it may warn of its own affairs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed")


def test_a_genpool_folder_returns_the_same_vectors(
    sentence_encoder: SentenceEncoder, pair_classifier: PairClassifier, folder: str, tmp_path: Path
) -> None:
    model: SentenceTransformer = load(folder, prompts={"query": "the dog "})
    assert isinstance(model, SentenceTransformer)
    assert model.model_card_data.model_name == f"{tmp_path.name}/encoder"
    expected = sentence_encoder.encode(MANY)
    np.testing.assert_allclose(model.encode(MANY, batch_size=5), expected, atol=1e-5)
    assert model.get_embedding_dimension() == sentence_encoder.output_dim
    expected = sentence_encoder.encode(["the dog " + sentence for sentence in SENTENCES])
    np.testing.assert_allclose(model.encode_query(SENTENCES), expected, atol=1e-5)
    model.max_seq_length = 2
    expected = sentence_encoder.encode(["a man"])
    np.testing.assert_allclose(model.encode(["a man sleeps, not"]), expected, atol=1e-5)
    pair_classifier.save_pretrained(tmp_path / "pairs")  # of a classifier, the encoder
    vectors = load(tmp_path / "pairs").encode(MANY)
    np.testing.assert_allclose(vectors, pair_classifier.encoder.encode(MANY), atol=1e-5)
    model = load()  # without a path the encoder inside
    assert model.model_card_data.model_name == "genpool/embedded"
    expected = SentenceEncoder.from_pretrained().encode(["A man sleeps."])
    np.testing.assert_allclose(model.encode(["A man sleeps."]), expected, atol=1e-5)


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
    [result] = encode_features(actual, SENTENCES[:1])
    weights = result["head_weights"]  # (heads, time, dim)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(2, weights.shape[2]))
    assert result["head_vectors"].shape == (2, weights.shape[2])
    config = json.loads((tmp_path / "saved" / "config_sentence_transformers.json").read_text())
    assert "genpool" in config["requirements"]
    inner = SentenceEncoder.from_pretrained(tmp_path / "saved" / "0_SentenceEncoderModule")
    np.testing.assert_allclose(inner.encode(MANY), sentence_encoder.encode(MANY), atol=1e-6)


@pytest.mark.filterwarnings("ignore::FutureWarning:setfit")
def test_setfit_fits_a_head_on_it(folder: str) -> None:
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
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_mteb_scores_it(folder: str) -> None:
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

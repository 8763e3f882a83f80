"""AttentiveProbe as an estimator of scikit-learn, saved and loaded, and what bad input gets."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from genpool import SentenceEncoder
from genpool.errors import FolderError, InputError
from genpool.integrations.probing import AttentiveProbe
from genpool.integrations.probing.token_states import GenpoolTokenEncoder
from tests.helpers.small_models import MakeEncoder

Rows = tuple[list[str], list[str]]


def small_probe(encoder: Any, **options: Any) -> AttentiveProbe:
    return AttentiveProbe(encoder, **{"steps": 30, "hidden_dim": 4, "extent": 1.0, **options})


@pytest.fixture(scope="module")
def trained(encoder_folder: Path, rows: Rows) -> AttentiveProbe:
    return small_probe(encoder_folder).fit(*rows)


def test_it_learns_and_predicts_labels_of_its_classes(trained: AttentiveProbe, rows: Rows) -> None:
    texts, labels = rows
    assert trained.classes_.tolist() == ["the dog", "the man"]
    probabilities = trained.predict_proba(texts)
    assert probabilities.shape == (60, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    predicted = trained.predict(texts)
    assert predicted.tolist() == trained.classes_[probabilities.argmax(axis=1)].tolist()
    assert trained.score(texts, labels) == np.mean(predicted == np.array(labels)) > 0.7
    # A text has the same probabilities alone and among others.
    alone = np.concatenate([trained.predict_proba([text]) for text in texts[:5]])
    np.testing.assert_allclose(alone, probabilities[:5], atol=1e-5)
    assert trained.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize("labels", [[3, 7], [False, True], [0.5, 1.5]], ids=repr)
def test_labels_keep_their_type(encoder: SentenceEncoder, rows: Rows, labels: list[Any]) -> None:
    texts = rows[0][:12]
    values = [labels[number % 2] for number in range(12)]
    probe = small_probe(encoder, pooling="mean").fit(texts, np.array(values))
    assert probe.classes_.tolist() == sorted(labels)
    assert type(probe.predict(texts[:1]).tolist()[0]) is type(labels[0])


def test_texts_may_be_arrays_and_columns(encoder: SentenceEncoder, rows: Rows) -> None:
    pandas = pytest.importorskip("pandas")
    texts, labels = rows[0][:12], rows[1][:12]
    probe = small_probe(encoder, pooling="mean")
    expected = probe.fit(texts, labels).predict_proba(texts)
    table = pandas.DataFrame({"text": texts, "label": labels})
    for columns in [
        (np.array(texts), np.array(labels)),
        (np.array(texts, dtype=object), tuple(labels)),
        (table["text"], table["label"]),
    ]:
        np.testing.assert_array_equal(probe.fit(*columns).predict_proba(columns[0]), expected)


def test_it_is_cloned_without_its_training(trained: AttentiveProbe) -> None:
    copy = clone(trained)
    assert copy.get_params() == trained.get_params()
    assert not hasattr(copy, "classes_")
    copy.set_params(heads=3, pooling="scalar")
    assert (copy.heads, copy.pooling, trained.heads) == (3, "scalar", trained.heads)
    assert is_classifier(copy)


@pytest.mark.slow
def test_it_works_in_cross_validation_grid_search_and_a_pipeline(
    encoder_folder: Path, rows: Rows, tmp_path: Path
) -> None:
    texts, labels = rows
    probe = small_probe(encoder_folder, steps=5, cache=tmp_path)
    scores = cross_val_score(probe, np.array(texts), labels, cv=2)
    assert len(scores) == 2 and np.isfinite(scores).all()
    search = GridSearchCV(probe, {"pooling": ["mean", "generalized"]}, cv=2).fit(texts, labels)
    assert search.best_params_["pooling"] in ("mean", "generalized")
    lower = FunctionTransformer(lambda column: [text.lower() for text in column])
    pipeline = make_pipeline(lower, probe).fit(texts, labels)
    assert set(pipeline.predict(texts[:3])) <= {"the man", "the dog"}


def test_states_are_cached_for_all_folds(
    encoder: SentenceEncoder, rows: Rows, tmp_path: Path
) -> None:
    encoded: list[str] = []

    class Counting(GenpoolTokenEncoder):
        def states(self, texts: Sequence[str]) -> list[Any]:
            encoded.extend(texts)
            return super().states(texts)

        def __deepcopy__(self, memo: Any) -> Counting:  # as clone does with arguments
            return self

    probe = small_probe(Counting(encoder), steps=2, cache=tmp_path)
    cross_val_score(probe, rows[0], rows[1], cv=3)
    assert sorted(encoded) == sorted(rows[0])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("{}", {"pooling": "generalized"}),
        ("{}", {"pooling": "last"}),
        ("transformer:{}", {"layers": (0, 1, 2)}),  # which are mixed
    ],
    ids=str,
)
def test_a_saved_probe_predicts_the_same(
    request: pytest.FixtureRequest,
    rows: Rows,
    tmp_path: Path,
    name: str,
    options: dict[str, Any],
) -> None:
    folder = request.getfixturevalue("encoder_folder" if name == "{}" else "bert_folder")
    probe = small_probe(name.format(folder), steps=3, **options).fit(*rows)
    probe.save_pretrained(tmp_path / "probe")
    probe.save_pretrained(tmp_path / "probe")  # replaces the earlier one
    again = AttentiveProbe.from_pretrained(tmp_path / "probe")
    expected = probe.predict_proba(rows[0])
    for copy in (again, pickle.loads(pickle.dumps(probe))):
        np.testing.assert_array_equal(copy.predict_proba(rows[0]), expected)
    assert again.classes_.tolist() == probe.classes_.tolist()
    assert again.pooling == probe.pooling
    assert (again.model_.layer_scores is not None) == ("layers" in options)
    card = (tmp_path / "probe" / "README.md").read_text()
    assert probe.pooling in card and "the dog, the man" in card


def test_a_saved_probe_finds_an_encoder_that_was_moved(
    trained: AttentiveProbe, encoder: SentenceEncoder, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    trained.save_pretrained(tmp_path / "probe")
    change_config(tmp_path / "probe", encoder=str(tmp_path / "gone"))
    with pytest.raises(FolderError, match=r"cannot be loaded.*encoder="):
        AttentiveProbe.from_pretrained(tmp_path / "probe")
    again = AttentiveProbe.from_pretrained(tmp_path / "probe", encoder=encoder)
    assert again.predict(["the dog runs"]).tolist() == trained.predict(["the dog runs"]).tolist()
    problem = r"not the encoder that .* its fingerprint is sha256:\w{12}, that of the training was"
    with pytest.raises(FolderError, match=problem):
        AttentiveProbe.from_pretrained(tmp_path / "probe", encoder=make_encoder(seed=9))


def change_config(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **values}
    del config["checksums"]
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"format": "genpool"}, "is not of a saved probe"),
        ({"format_version": 99}, "version 99"),
        ({"classes": ["a", "b", "c"]}, "does not agree"),
        ({"arguments": {"pooling": "mean", "colour": "red"}}, "is damaged"),
        ({"arguments": {"heads": 3}}, "does not agree"),
        ({"c": None}, "is damaged"),
    ],
    ids=str,
)
def test_a_damaged_folder_is_refused(
    trained: AttentiveProbe, tmp_path: Path, values: dict[str, Any], problem: str
) -> None:
    trained.save_pretrained(tmp_path / "probe")
    change_config(tmp_path / "probe", **values)
    with pytest.raises(FolderError, match=problem):
        AttentiveProbe.from_pretrained(tmp_path / "probe")


def test_weights_of_another_probe_are_noticed(
    trained: AttentiveProbe, encoder_folder: Path, rows: Rows, tmp_path: Path
) -> None:
    trained.save_pretrained(tmp_path / "one")
    small_probe(encoder_folder, steps=2, seed=5).fit(*rows).save_pretrained(tmp_path / "other")
    weights = (tmp_path / "other" / "model.safetensors").read_bytes()
    (tmp_path / "one" / "model.safetensors").write_bytes(weights)
    with pytest.raises(FolderError, match="do not belong together"):
        AttentiveProbe.from_pretrained(tmp_path / "one")


def test_only_a_probe_is_replaced_and_only_a_probe_is_loaded(
    trained: AttentiveProbe, encoder_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(FolderError, match="contains something else"):
        trained.save_pretrained(encoder_folder)
    with pytest.raises(FolderError, match="there is no such folder"):
        AttentiveProbe.from_pretrained(tmp_path / "missing")
    with pytest.raises(FolderError, match="is not of a saved probe"):
        AttentiveProbe.from_pretrained(encoder_folder)


def test_an_encoder_in_memory_cannot_be_named_in_a_folder(
    encoder: SentenceEncoder, rows: Rows, tmp_path: Path
) -> None:
    probe = small_probe(encoder, pooling="mean").fit(*rows)
    with pytest.raises(InputError, match="exists in memory only"):
        probe.save_pretrained(tmp_path / "probe")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pooling", ["generalized", "mean"])
def test_explanations_say_what_the_heads_look_at(
    encoder_folder: Path, rows: Rows, pooling: str
) -> None:
    probe = small_probe(encoder_folder, pooling=pooling, steps=3).fit(*rows)
    explanation = probe.explain("the dog runs .")
    assert [token.text for token in explanation.tokens] == ["the", "dog", "runs", "."]
    heads = probe.model_.pooling.heads
    assert explanation.token_weights.shape == (heads, 4)
    np.testing.assert_allclose(explanation.token_weights.sum(axis=1), 1, atol=1e-5)
    if pooling == "mean":
        np.testing.assert_allclose(explanation.token_weights, 0.25, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"texts": "a man", "labels": [1]}, "texts are one string"),
        ({"labels": [0, 1, 0]}, "3 for 4 texts"),
        ({"labels": ["a"] * 4}, "expected 2 or more different ones"),
        ({"texts": [], "labels": []}, "expected 2 or more different ones"),
        ({"heads": 0}, "heads is 0"),
        ({"hidden_dim": 2.5}, "hidden_dim is 2.5"),
        ({"steps": -1}, "steps is -1"),
        ({"batch_size": True}, "batch_size is True"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"token_dropout": -0.1}, "token_dropout is -0.1"),
        ({"extent": 1.5}, "extent is 1.5"),
        ({"pooling": "generalised"}, "pooling of a probe .* Did you mean 'generalized'"),
        ({"encoder": 7}, "encoder is int"),
        ({"layers": "all"}, "only the last layer"),
    ],
    ids=str,
)
def test_rows_and_options_that_are_not_possible_are_refused(
    encoder: SentenceEncoder, options: dict[str, Any], problem: str
) -> None:
    texts = options.pop("texts", ["a man", "a dog", "the man", "the dog"])
    labels = options.pop("labels", [0, 1, 0, 1])
    with pytest.raises(InputError, match=problem):
        small_probe(**{"encoder": encoder, **options}).fit(texts, labels)


def test_a_probe_needs_training_for_which_one_row_of_a_class_is_enough(
    encoder: SentenceEncoder,
) -> None:
    probe = small_probe(encoder)
    for call in (probe.predict, probe.explain, probe.save_pretrained):
        with pytest.raises(InputError, match="not trained yet"):
            call("anything")
    probe.fit(["a man", "a dog", "the man"], ["man", "dog", "man"])
    assert probe.predict_proba(["a dog"]).shape == (1, 2)

"""scikit-learn: vectors in pipelines, and a classifier that is trained by `fit`."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from genpool import SentenceEncoder, TextClassifier
from genpool.errors import FolderError, InputError
from genpool.integrations import sklearn as integration
from genpool.integrations.load_encoder import FolderBytes
from genpool.integrations.sklearn import GenpoolClassifier, SentenceVectorizer
from genpool.text.validation import read_texts

TEXTS = ["the red dog", "a man sleeps", "a red dog runs", "the man rests"] * 10
LABELS = ["dog", "man", "dog", "man"] * 10


def small(start: Any, **options: Any) -> GenpoolClassifier:
    """A classifier that learns TEXTS in a second."""
    return GenpoolClassifier(start, **{"epochs": 30, "learning_rate": 0.02, **options})


@pytest.fixture(scope="module")
def fitted(make_encoder) -> GenpoolClassifier:
    return small(make_encoder()).fit(TEXTS, LABELS)


# --- SentenceVectorizer


def test_texts_become_the_vectors_of_encode(sentence_encoder: SentenceEncoder, folder: str) -> None:
    options: dict[str, Any] = {"normalize_embeddings": True, "truncate_dim": 5, "batch_size": 3}
    expected = sentence_encoder.encode(TEXTS, **options)
    for model in (folder, Path(folder), sentence_encoder):
        vectors = SentenceVectorizer(model, **options).fit_transform(TEXTS)
        assert np.array_equal(vectors, expected)


def test_the_embedded_encoder_needs_no_argument_no_fit_and_a_small_pickle() -> None:
    expected = SentenceEncoder.from_pretrained().encode(TEXTS[:2])
    vectorizer = SentenceVectorizer()
    assert np.allclose(vectorizer.transform(TEXTS[:2]), expected, atol=1e-6)
    assert len(pickle.dumps(vectorizer)) < 2000
    for estimator in (vectorizer, GenpoolClassifier()):
        tags = estimator.__sklearn_tags__().input_tags
        assert tags.string and not tags.two_d_array


def test_wrong_texts_options_and_folders_are_told_by_fit(
    sentence_encoder: SentenceEncoder, tmp_path: Path
) -> None:
    """The validator is that of `encode`, whose tests have all kinds of columns."""
    with pytest.raises(InputError, match=r"shape \(1, 2\).*columns 'a', 'b'"):
        SentenceVectorizer(sentence_encoder).fit(pd.DataFrame({"a": ["x"], "b": ["y"]}))
    with pytest.raises(InputError, match="truncate_dim is 99999"):
        SentenceVectorizer(sentence_encoder, truncate_dim=99999).fit(TEXTS)
    with pytest.raises(FolderError, match="there is no such folder"):
        SentenceVectorizer(tmp_path / "none").fit(TEXTS)


def test_dimensions_have_names_and_can_be_a_data_frame(sentence_encoder: SentenceEncoder) -> None:
    vectorizer = SentenceVectorizer(sentence_encoder, truncate_dim=2).set_output(transform="pandas")
    frame = vectorizer.fit_transform(TEXTS)
    assert list(frame.columns) == ["sentencevectorizer0", "sentencevectorizer1"]
    assert np.array_equal(frame.to_numpy(), sentence_encoder.encode(TEXTS, truncate_dim=2))


def test_another_folder_can_be_set_and_pickled(make_encoder, folder: str, tmp_path: Path) -> None:
    other = make_encoder(seed=7)
    other.save_pretrained(tmp_path / "other")
    vectorizer = SentenceVectorizer(folder)
    before = vectorizer.transform(TEXTS)
    after = vectorizer.set_params(model=str(tmp_path / "other")).transform(TEXTS)
    assert np.array_equal(after, other.encode(TEXTS))
    assert not np.allclose(before, after)
    state = pickle.dumps(vectorizer)  # which needs the folder no more
    (tmp_path / "other").rename(tmp_path / "gone")
    assert np.array_equal(pickle.loads(state).transform(TEXTS), after)


def test_a_pipeline_is_searched_over_the_options_of_encode(folder: str) -> None:
    pipeline = make_pipeline(SentenceVectorizer(folder), LogisticRegression())
    grid = {"sentencevectorizer__truncate_dim": [1, None], "logisticregression__C": [1.0, 100.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(TEXTS, LABELS)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ == 1.0  # the four texts are in every fold
    assert search.predict(["the red dog", "the man rests"]).tolist() == ["dog", "man"]


def test_a_column_of_texts_is_joined_with_other_columns(sentence_encoder: SentenceEncoder) -> None:
    frame = pd.DataFrame({"text": TEXTS, "length": [float(len(text)) for text in TEXTS]})
    for columns in ("text", ["text"]):
        transformer = ColumnTransformer(
            [
                ("vectors", SentenceVectorizer(sentence_encoder), columns),
                ("scaled", StandardScaler(), ["length"]),
            ]
        )
        joined = transformer.fit_transform(frame)
        vectors = sentence_encoder.encode(TEXTS)
        assert np.allclose(joined[:, :-1], vectors)
        assert joined.shape == (len(TEXTS), vectors.shape[1] + 1)


# --- GenpoolClassifier


def test_a_classifier_learns_what_the_text_classifier_does(
    fitted: GenpoolClassifier, make_encoder
) -> None:
    assert fitted.classes_.tolist() == ["dog", "man"]
    assert fitted.score(TEXTS, LABELS) == 1.0
    probabilities = fitted.predict_proba(TEXTS)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    expected = fitted.model_.predict_proba(TEXTS)  # columns in the order of model_.labels
    order = [fitted.model_.labels.index(label) for label in ("dog", "man")]
    assert np.array_equal(probabilities, expected[:, order])
    options: dict[str, Any] = {"epochs": 30, "learning_rate": 0.02, "show_progress_bar": False}
    model = TextClassifier.fit(TEXTS, LABELS, start=make_encoder(), **options)
    for name, weights in fitted.model_.state_dict().items():
        assert torch.equal(weights, model.state_dict()[name])


@pytest.mark.parametrize(
    ("dog", "man"),
    [(10, 9), (True, False), ("10", "9"), (" a", "a"), (np.int64(-1), np.int64(1))],
)
def test_classes_keep_their_type_and_order(make_encoder, dog: object, man: object) -> None:
    labels = [dog if label == "dog" else man for label in LABELS]
    classifier = small(make_encoder()).fit(TEXTS, np.array(labels))
    assert classifier.classes_.tolist() == sorted([dog, man])  # type: ignore[type-var]
    assert classifier.predict(TEXTS[:2]).tolist() == [dog, man]
    assert classifier.predict(TEXTS[:2]).dtype == np.array(labels).dtype


def test_a_dev_set_may_be_given(make_encoder) -> None:
    classifier = small(make_encoder()).fit(TEXTS, LABELS, dev=(TEXTS[:4], LABELS[:4]))
    assert classifier.score(TEXTS, LABELS) == 1.0
    with pytest.raises(InputError, match="dev has the label 'cat', which no training row has"):
        small(make_encoder()).fit(TEXTS, LABELS, dev=(["a dog"], ["cat"]))


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (TEXTS, LABELS[1:], "y: 39 for 40 texts"),
        (TEXTS, ["dog"] * 40, r"y has one class only \('dog'\)"),
        ([], [], "expected 1 or more different ones"),
        (TEXTS, None, "requires y to be passed"),
        (TEXTS, [np.nan, *LABELS[1:]], "y.*1 missing"),
        (TEXTS, np.array([1, *LABELS[1:]], dtype=object), "y are of mixed types"),
        ([None, *TEXTS[1:]], LABELS, r"1 missing values \(rows 0\)"),
        (pd.DataFrame({"a": TEXTS, "b": TEXTS}), LABELS, "name one column"),
    ],
)
def test_rows_that_cannot_be_learned_are_told(
    sentence_encoder: SentenceEncoder, texts: object, labels: object, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        small(sentence_encoder).fit(texts, labels)


def test_the_random_state_decides_the_weights(make_encoder) -> None:
    def probabilities(random_state: object) -> np.ndarray:
        model = small(make_encoder(), random_state=random_state, epochs=1)
        return model.fit(TEXTS, LABELS).predict_proba(TEXTS)

    assert np.array_equal(probabilities(3), probabilities(3))
    assert not np.allclose(probabilities(3), probabilities(4))
    one, other = (probabilities(np.random.RandomState(5)) for _ in range(2))
    assert np.array_equal(one, other)


def test_a_pickle_holds_the_saved_folder_and_predicts_the_same(fitted: GenpoolClassifier) -> None:
    state = fitted.__getstate__()
    assert isinstance(state["model_"], FolderBytes)
    assert isinstance(state["start"], FolderBytes)
    assert set(state["model_"].files) >= {"config.json", "model.safetensors", "tokenizer.json"}
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert copy.predict(TEXTS[:2]).tolist() == ["dog", "man"]
    files = FolderBytes(fitted.model_)  # damaged weights are noticed
    files.files["model.safetensors"] = files.files["model.safetensors"][:-4] + b"\0\0\0\1"
    with pytest.raises(FolderError, match="checksum"):
        files.load()


def test_it_is_cross_validated_and_searched(folder: str) -> None:
    assert cross_val_score(small(folder), TEXTS, LABELS, cv=2).tolist() == [1.0, 1.0]
    search = GridSearchCV(small(folder), {"epochs": [1, 30]}, cv=2, n_jobs=1)
    assert search.fit(TEXTS, LABELS).best_params_ == {"epochs": 30}


# --- The estimator checks of scikit-learn, which leave out estimators of texts because they pass
# arrays of numbers: here a row of numbers is read as a text.

ENCODER = str(Path(__file__).parent.parent / "golden" / "v1-encoder")


def numbers_as_texts(X: Any) -> list[str]:  # noqa: N803
    """The texts of an array of numbers, a row each; anything else as it is."""
    if getattr(X, "dtype", None) is None or X.dtype.kind not in "fiub" or X.ndim != 2:
        return read_texts(X)
    return [" ".join(f"{value:.2f}" for value in row) for row in np.asarray(X)]


@pytest.fixture
def texts_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integration, "read_texts", numbers_as_texts)


class _TakesNumbers:
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = True
        return tags


class NumberVectorizer(_TakesNumbers, SentenceVectorizer):
    """A vectorizer of texts that are numbers."""


class NumberClassifier(_TakesNumbers, GenpoolClassifier):
    """A classifier of texts that are numbers."""


NO_COLUMNS = "a text has no number of features"
NO_NUMBERS = "the values of an array of numbers are not checked: texts have none"
NO_SPARSE = "a sparse matrix of texts does not exist; the message is that of any other input"
#: the checks that do not hold for texts, with the reason
FOR_BOTH = {
    "check_n_features_in_after_fitting": NO_COLUMNS,
    "check_n_features_in": NO_COLUMNS,
    "check_fit2d_predict1d": "one dimension is what texts have",
    "check_complex_data": NO_NUMBERS,
    "check_dtype_object": NO_NUMBERS,
    "check_estimators_nan_inf": NO_NUMBERS,
    "check_estimator_sparse_tag": NO_SPARSE,
    "check_estimator_sparse_array": NO_SPARSE,
    "check_estimator_sparse_matrix": NO_SPARSE,
}
FOR_VECTORIZER = {
    "check_estimators_empty_data_messages": "no texts have no vectors, an array (0, output_dim)",
    "check_transformer_data_not_an_array": "a list of texts is expected where no array is",
}
FOR_CLASSIFIER = {
    "check_estimators_empty_data_messages": "rows without features are texts without words",
    "check_classifier_data_not_an_array": "a list of texts is expected where no array is",
    "check_classifiers_train": "wants points in a plane told apart by their numbers",
}


@parametrize_with_checks(
    [NumberVectorizer(ENCODER), NumberClassifier(ENCODER, epochs=1)],
    expected_failed_checks=lambda estimator: (
        FOR_BOTH | (FOR_VECTORIZER if isinstance(estimator, NumberVectorizer) else FOR_CLASSIFIER)
    ),
)
@pytest.mark.usefixtures("texts_of_numbers")
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)

"""The estimator checks of scikit-learn, on numbers that are written as words.

scikit-learn leaves estimators of texts out of its checks, because these pass arrays of numbers.
Here a row of numbers is read as a text, so that everything else about the estimators is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from genpool.integrations import sklearn as integration
from genpool.integrations.sklearn import GenpoolClassifier, SentenceVectorizer
from genpool.text.validation import read_texts

ENCODER = str(Path(__file__).parent.parent / "golden" / "v1-encoder")


def numbers_as_texts(X: Any) -> list[str]:  # noqa: N803
    """The texts of an array of numbers, a row each; anything else as it is."""
    if getattr(X, "dtype", None) is None or X.dtype.kind not in "fiub" or X.ndim != 2:
        return read_texts(X)
    return [" ".join(f"{value:.2f}" for value in row) for row in np.asarray(X)]


@pytest.fixture(autouse=True)
def texts_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integration, "read_texts", numbers_as_texts)


class NumberVectorizer(SentenceVectorizer):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class NumberClassifier(GenpoolClassifier):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


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


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, NumberVectorizer):
        return FOR_BOTH | FOR_VECTORIZER
    return FOR_BOTH | FOR_CLASSIFIER


@parametrize_with_checks(
    [NumberVectorizer(ENCODER), NumberClassifier(ENCODER, epochs=1)],
    expected_failed_checks=expected_failures,
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_both_say_that_they_take_texts() -> None:
    for estimator in (SentenceVectorizer(), GenpoolClassifier()):
        tags = estimator.__sklearn_tags__()
        assert tags.input_tags.string
        assert not tags.input_tags.two_d_array

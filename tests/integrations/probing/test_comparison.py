"""The report on several poolings, compared with scikit-learn and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from genpool import SentenceEncoder
from genpool.errors import InputError
from genpool.integrations.probing import AttentiveProbe, PoolingComparison, compare_poolings
from genpool.integrations.probing.comparison import MIN_COUNT, head_words

Rows = tuple[list[str], list[str]]
Compared = tuple[PoolingComparison, dict[str, AttentiveProbe]]


@pytest.fixture(scope="module")
def compared(encoder: SentenceEncoder, rows: Rows, test_rows: Rows) -> Compared:
    options: dict[str, Any] = {"steps": 20, "hidden_dim": 4, "learning_rate": 1e-2, "extent": 1.0}
    return compare_poolings(rows, test_rows, encoder=encoder, **options)


def test_poolings_are_scored_on_the_same_texts_and_tested_against_the_first(
    compared: Compared, test_rows: Rows
) -> None:
    report, probes = compared
    assert list(probes) == ["mean", *report.comparisons] == ["mean", "max", "scalar", "generalized"]
    texts, gold = test_rows[0], np.array(test_rows[1])
    mean = probes["mean"].predict(texts) == gold
    for result in report.results:
        right = probes[result.pooling].predict(texts) == gold
        assert (result.accuracy.accuracy, result.accuracy.total) == (right.mean(), 40)
        if result.pooling == "mean":
            continue
        test = report.comparisons[result.pooling]
        only, other = int((right & ~mean).sum()), int((mean & ~right).sum())
        assert (test.only_a, test.only_b) == (only, other)
        expected = binomtest(only, only + other).pvalue if only + other else 1.0
        assert test.mcnemar_p_value == pytest.approx(expected)


def test_the_report_has_a_line_for_each_pooling_and_the_words_of_each_head(
    compared: Compared,
) -> None:
    report, _ = compared
    text = report.to_markdown()
    assert "60 training texts, 40 test texts." in text
    assert all(f"\n| {name} | " in text for name in ("mean", "max", "scalar", "generalized"))
    assert "What generalized pooling looks at" in text
    assert "What mean pooling looks at" not in text
    values = report.to_dict()
    assert values["compared_with"] == "mean"
    assert set(values["poolings"]) == {"mean", "max", "scalar", "generalized"}
    assert len(values["poolings"]["generalized"]["heads"]) == 2


def test_head_words_are_the_means_of_relative_weights(compared: Compared, rows: Rows) -> None:
    probe = compared[1]["generalized"]
    texts = rows[0][:20]
    listed = head_words(probe, texts, probe.states(texts))
    by_hand: dict[str, list[float]] = {}
    for text in texts:
        weights = probe.explain(text).token_weights[0]  # of the first head
        for token, weight in zip(text.split(), weights, strict=True):
            by_hand.setdefault(token, []).append(float(weight) * len(weights))
    frequent = {token: np.mean(v) for token, v in by_hand.items() if len(v) >= MIN_COUNT}
    expected = sorted(frequent, key=lambda token: -frequent[token])
    assert [word.token for word in listed[0]] == expected[: len(listed[0])]
    assert listed[0][0].ratio == pytest.approx(frequent[expected[0]], rel=1e-4)
    assert listed[0][0].count == len(by_hand[expected[0]])


def test_an_untrained_attention_is_the_probe_of_the_mean_and_looks_everywhere_alike(
    encoder: SentenceEncoder, rows: Rows, test_rows: Rows, compared: Compared
) -> None:
    mean = compared[1]["mean"].predict_proba(test_rows[0])
    probe = AttentiveProbe(encoder, steps=1, learning_rate=0.0, extent=1.0).fit(*rows)
    np.testing.assert_allclose(probe.predict_proba(test_rows[0]), mean, atol=0.02)
    for head in head_words(probe, rows[0], probe.states(rows[0])):
        assert all(word.ratio == pytest.approx(1.0, abs=1e-5) for word in head)


def test_one_test_text_is_not_compared_and_what_cannot_be_compared_is_refused(
    encoder: SentenceEncoder, rows: Rows
) -> None:
    report, _ = compare_poolings(rows, (["a dog"], ["the dog"]), ["mean", "max"], encoder=encoder)
    assert report.comparisons == {}
    assert "| max | " in report.to_markdown()
    poolings: list[str]
    for poolings in ([], ["mean", "mean"]):
        with pytest.raises(InputError, match="expected different names"):
            compare_poolings(rows, rows, poolings, encoder=encoder)
    with pytest.raises(InputError, match="the cat"):
        compare_poolings(rows, (["a dog"], ["the cat"]), ["mean"], encoder=encoder)

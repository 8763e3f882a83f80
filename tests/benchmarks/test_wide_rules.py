"""The corpus of the wide rules: balanced, right English, nothing to guess from one sentence."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter

import pytest

from benchmarks.release.wide_rules import WIDE_RULES, nations, opposites, words
from genpool.reproduction.rules import LABELS, RULES, Pair, ask, generate
from genpool.reproduction.scenes import Dice, render


@pytest.fixture(scope="module")
def corpus() -> list[Pair]:
    return list(generate(9_000, seed=0, rules=WIDE_RULES))


@pytest.fixture(scope="module")
def unseen() -> list[Pair]:
    return list(generate(4_000, seed=1, rules=WIDE_RULES))


# --- The set of rules ----------------------------------------------------------------------------


def test_the_first_wide_pairs_never_change() -> None:
    """Models are trained on the corpus: whoever changes it has to say so."""
    lines = "\n".join("\t".join(pair) for pair in generate(2_000, rules=WIDE_RULES))
    assert hashlib.sha256(lines.encode()).hexdigest()[:16] == "fc8e24e8143c6fac"


@pytest.mark.slow
def test_every_rule_occurs_with_every_label_about_as_often(corpus: list[Pair]) -> None:
    counts = Counter((pair.rule, pair.label) for pair in corpus)
    expected = len(corpus) / len(WIDE_RULES) / len(LABELS)
    assert set(counts) == set(itertools.product(WIDE_RULES, LABELS))
    assert all(0.7 * expected < count < 1.3 * expected for count in counts.values())


@pytest.mark.slow
def test_no_two_sentences_have_two_labels_or_are_equal(
    corpus: list[Pair], unseen: list[Pair]
) -> None:
    labels: dict[tuple[str, str], set[str]] = {}
    for pair in corpus + unseen:
        assert pair.premise != pair.hypothesis
        labels.setdefault((pair.premise, pair.hypothesis), set()).add(pair.label)
    assert not [pair for pair, found in labels.items() if len(found) > 1]


def test_a_rule_gives_one_hypothesis_with_three_different_premises() -> None:
    dice = Dice(5)
    for rule in WIDE_RULES.values():
        for _ in range(100):
            hypothesis, premises = ask(rule, dice)
            assert tuple(premises) == LABELS
            texts = {*map(render, (hypothesis, *premises.values()))}
            assert rule in RULES.values() or len(texts) == 4


@pytest.mark.slow
def test_the_hypothesis_alone_says_nothing(corpus: list[Pair], unseen: list[Pair]) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    bags = text.CountVectorizer(token_pattern=r"[\w-]+").fit(pair.hypothesis for pair in corpus)
    vectors, others = (
        bags.transform([pair.hypothesis for pair in pairs]) for pairs in (corpus, unseen)
    )
    guesser = linear.LogisticRegression(C=0.1, max_iter=2000)
    guesser.fit(vectors, [pair.label for pair in corpus])
    assert guesser.score(others, [pair.label for pair in unseen]) < 0.37


# --- The English ---------------------------------------------------------------------------------


def test_sentences_look_like_sentences_with_an_before_vowels(corpus: list[Pair]) -> None:
    for pair in corpus:
        for sentence in pair[1:3]:
            assert re.fullmatch(r"[A-Z0-9][\w,-]*( [\w,-]+)+\.", sentence), sentence
            assert "  " not in sentence
        for article, word in re.findall(r"\b([Aa]n?) ([\w-]+)", " ".join(pair[1:3])):
            vowel = word[0].lower() in "aeiou" and word not in ("uniform", "European")
            assert (article.lower() == "an") == vowel, pair


# --- The tables ----------------------------------------------------------------------------------


def test_a_word_has_one_place_in_its_tree_and_only_such_words_are_used() -> None:
    for tree in (words.PEOPLE, words.THINGS, words.COLOURS, nations.WORLD):
        assert len(tree.words) == len(set(tree.words))
    for use in itertools.chain(*words.USES.values()):
        found = words.THINGS.under(use)
        assert found and set(words.THINGS.words).issuperset(found)
        assert words.THINGS.children(use)
    assert not set(words.WORKERS) & set(words.PEOPLE.words)


def test_no_word_is_on_both_sides_of_a_row() -> None:
    for row in (*opposites.STATES, *opposites.ACTIONS):
        assert row.first and row.second and not {*row.first} & {*row.second}
    assert all(row.things and len(row.first) > 1 < len(row.second) for row in opposites.STATES)

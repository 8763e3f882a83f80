"""Seeded splits and shares."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genpool.data.splits import seeded_order, stratified_share
from genpool.errors import ConfigError, DataError

labels_lists = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=8, max_size=80)


def pcg64(seed_state, increment, count):
    """PCG-XSL-RR-128/64, from its definition (O'Neill 2014), in plain integers."""
    numbers, state = [], seed_state
    for _ in range(count):
        state = (state * 47026247687942121848144207491837523525 + increment) % (1 << 128)
        folded, turn = (state >> 64) ^ (state % (1 << 64)), state >> 122
        numbers.append(((folded >> turn) | (folded << (64 - turn))) % (1 << 64))
    return numbers


def test_the_order_is_that_of_the_generator_as_it_is_defined():
    start = np.random.PCG64(7).state["state"]
    keys = pcg64(start["state"], start["inc"], 50)
    assert seeded_order(50, 7).tolist() == sorted(range(50), key=keys.__getitem__)


def test_the_order_never_changes():
    # Written down once: a split that moved would make every published number wrong.
    assert seeded_order(8, 0).tolist() == [3, 2, 1, 6, 0, 7, 4, 5]
    assert seeded_order(8, 1).tolist() == [2, 4, 7, 5, 0, 6, 3, 1]


@given(labels_lists, st.floats(0.05, 0.5), st.integers(0, 3))
@example(["a"] * 6 + ["b", "c", None], 0.46875, 0)
def test_a_share_takes_from_every_label_in_proportion(labels, share, seed):
    try:
        rows = stratified_share(labels, share, seed)
    except DataError:
        assert max(Counter(labels).values()) == 1
        return
    assert rows.tolist() == sorted(set(rows.tolist()))
    taken, have = Counter(labels[row] for row in rows), Counter(labels)
    for label, count in have.items():
        assert abs(taken[label] - count * share) <= 1
        assert taken[label] < count
    # A label keeps a row, and gives at most one more than its share: single rows give none.
    most = sum(min(count - 1, math.floor(count * share + 1)) for count in have.values())
    assert min(len(labels) * share, most) - 1 <= len(rows) <= len(labels) * share + 1


def test_a_tenth_of_a_large_set_is_exact():
    labels = ["a"] * 500 + ["b"] * 300 + ["c"] * 200
    rows = stratified_share(labels, 0.1, seed=0)
    assert Counter(labels[row] for row in rows) == {"a": 50, "b": 30, "c": 20}


def test_a_share_that_cannot_be_taken_is_refused():
    for labels in ([], ["a"], ["a", "b", "c"]):
        with pytest.raises(DataError, match="too few to take a dev share of; provide a dev set"):
            stratified_share(labels, 0.5, seed=0)
    with pytest.raises(ConfigError, match="seed is -1; expected 0 or more"):
        stratified_share(["a"] * 10, 0.5, seed=-1)
    for share in (0, 1, -0.1, 10, float("nan")):
        with pytest.raises(ConfigError, match="expected a number between 0 and 1"):
            stratified_share(["a"] * 10, share, seed=0)

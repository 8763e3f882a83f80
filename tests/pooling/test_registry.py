"""The dictionary of poolings, and what each says of itself, which other modules ask for."""

import importlib
import inspect
import pkgutil

import pytest
import torch

from genpool import pooling
from genpool.pooling import POOLINGS, AttentionPooling, Pooling
from genpool.pooling.baselines import ReductionPooling
from genpool.pooling.penalties import (
    attention_penalty,
    embedding_penalty,
    parameter_penalty,
    scalar_attention_penalty,
)
from genpool.tensors.packing import Packing

from .cases import CASES, every_case, mask_of, pool, random_gates, random_states

COMPUTE = {
    "parameter": lambda pooling, pooled: parameter_penalty(pooling.head_parameters(), 1e6),
    "attention": lambda pooling, pooled: attention_penalty(pooled.weights, 1e6),
    "embedding": lambda pooling, pooled: embedding_penalty(pooled.heads, 1e6),
    "scalar": lambda pooling, pooled: scalar_attention_penalty(pooled.weights),
}


def every_pooling_class():
    """Every subclass of Pooling in every file of the folder, exported or not."""
    classes = set()
    for module in pkgutil.iter_modules(pooling.__path__, "genpool.pooling."):
        members = vars(importlib.import_module(module.name)).values()
        classes |= {m for m in members if inspect.isclass(m) and issubclass(m, Pooling)}
    return classes - {Pooling, AttentionPooling, ReductionPooling}


def test_names_are_those_that_settings_and_saved_folders_use():
    names = "generalized scalar inner gated source-to-token max mean last mean-max"
    assert list(POOLINGS) == names.split()


def test_every_pooling_of_the_folder_has_one_name():
    assert set(POOLINGS.values()) == every_pooling_class()
    assert len(set(POOLINGS.values())) == len(POOLINGS)


def test_every_pooling_is_tried_by_the_tests_of_this_folder():
    assert {case.name for case in CASES} == set(POOLINGS)


def test_the_penalties_of_every_pooling():
    assert {name: kind.penalties for name, kind in POOLINGS.items() if kind.penalties} == {
        "generalized": ("parameter", "attention", "embedding"),
        "scalar": ("attention", "embedding", "scalar"),
        "source-to-token": ("attention",),
    }


@every_case
def test_every_penalty_of_a_pooling_can_be_computed_and_reaches_its_parameters(case):
    pooling = case.make(4)
    for name in pooling.penalties:
        pooling.zero_grad()
        pooled = pool(pooling, random_states(2, 5, 4), mask_of([5, 3], 5))
        term = COMPUTE[name](pooling, pooled).term
        assert term.isfinite()
        if pooling.heads > 1:
            term.backward()
            assert any(p.grad is not None and p.grad.any() for p in pooling.parameters()), name


@every_case
def test_a_packed_pooling_is_one_that_pools_rows_without_the_padded_form(case, monkeypatch):
    pooling, mask = case.make(4), mask_of([3, 1], 4)
    packing = Packing.from_mask(mask)
    rows, gates = random_states(4, 4), random_gates(1, 4)[0]

    def refuse(*arguments, **options):
        raise NotImplementedError

    monkeypatch.setattr(type(pooling), "forward", refuse)
    try:
        pooling.pool_rows(rows, packing, gates if pooling.needs_gates else None)
    except NotImplementedError:
        assert not pooling.is_packed
    else:
        assert pooling.is_packed


@every_case
def test_head_parameters_belong_to_one_head_each(case):
    pooling = case.make(4)
    parameters = pooling.head_parameters()
    assert pooling.heads == case.heads
    if parameters is None:
        assert "parameter" not in pooling.penalties
        return
    assert len(parameters) == case.heads
    states, mask = random_states(2, 5, 4), mask_of([5, 3], 5)
    before = pooling(states, mask).heads
    with torch.no_grad():
        parameters[0] += 1
    changed = (pooling(states, mask).heads - before).abs().amax(dim=(0, 2)) > 1e-6
    assert changed.tolist() == [True] + [False] * (case.heads - 1)


@pytest.mark.parametrize("name", POOLINGS)
def test_a_pooling_that_needs_the_direction_takes_it(name):
    takes = "bidirectional" in inspect.signature(POOLINGS[name]).parameters
    assert POOLINGS[name].needs_direction is takes

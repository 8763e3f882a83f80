"""The public names of the room, and its one dictionary of poolings."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest
import torch
from safetensors.torch import load, save
from torch import nn

from genpool import pooling
from genpool.pooling import POOLINGS, AttentionPooling, Pooled, Pooling
from genpool.pooling.simple import ReductionPooling

from .cases import CASES, mask_of, pool, random_gates, random_states


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


def test_every_pooling_is_exported():
    exported = {getattr(pooling, name) for name in pooling.__all__ if name != "POOLINGS"}
    assert every_pooling_class() <= exported


def test_all_lists_exactly_the_public_names():
    public = {
        name
        for name, value in vars(pooling).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(pooling.__all__) == public | {"penalties"}
    assert len(pooling.__all__) == len(set(pooling.__all__))


def test_frozen_names_are_there():
    frozen = """GeneralizedPooling ScalarAttentionPooling InnerAttentionPooling GatedPooling
        SourceToTokenPooling MaxPooling MeanPooling LastPooling POOLINGS Pooled"""
    assert set(frozen.split()) <= set(pooling.__all__)
    penalties = "parameter_penalty attention_penalty embedding_penalty scalar_attention_penalty"
    for name in penalties.split():
        assert callable(getattr(pooling.penalties, name))


def test_result_has_its_frozen_fields_in_order():
    assert Pooled._fields == ("vector", "heads", "weights")


def test_every_pooling_is_tried_by_the_tests_of_this_folder():
    assert {case.name for case in CASES} == set(POOLINGS)


@pytest.mark.parametrize("name", POOLINGS)
def test_every_pooling_is_a_module_made_from_its_width_alone(name):
    made = POOLINGS[name](6)
    assert isinstance(made, nn.Module)
    assert made.input_dim == 6
    states, mask = random_states(2, 3, 6), mask_of([3, 1], 3)
    assert pool(made, states, mask, random_gates(2, 3)).vector.shape == (2, made.output_dim)


def test_only_gated_pooling_needs_gates():
    assert [name for name, kind in POOLINGS.items() if kind.needs_gates] == ["gated"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_state_dict_comes_back_bit_for_bit(case):
    one, other = case.make(6, seed=1), case.make(6, seed=2)
    other.load_state_dict(load(save(one.state_dict())))
    assert list(other.state_dict()) == list(one.state_dict())
    for name, tensor in one.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
    states, mask, gates = random_states(2, 5, 6), mask_of([5, 3], 5), random_gates(2, 5)
    assert torch.equal(
        pool(other, states, mask, gates).vector, pool(one, states, mask, gates).vector
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_printing_a_pooling_says_its_sizes(case):
    assert f"input_dim=6, output_dim={6 * case.heads}" in repr(case.make(6))

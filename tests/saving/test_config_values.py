"""Wrong values in config.json are refused by name, whatever they are."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genpool import PairClassifier
from genpool.errors import GenpoolError
from genpool.model import load_model
from tests.helpers.saved_folders import PAIRS, change_json, refusal


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        ("characters", ["a", "b"], "characters is list, expected str"),
        ("characters", 5, "characters is int, expected str"),
        ("characters", None, "characters is NoneType, expected str"),
        ("characters", "aa", "the character 'a' occurs more than once"),
        ("labels", "yes", "labels is str, expected list"),
        ("labels", None, "labels is NoneType, expected list"),
        ("labels", {"yes": 0}, "labels is dict, expected list"),
        ("labels", [1, 2, 3], "labels are (1, 2, 3); expected two or more different texts"),
        ("labels", ["a", "a", "b"], "expected two or more different texts"),
        ("labels", [], "expected two or more different texts"),
        ("settings", [], "settings is list, expected dict"),
        ("settings", None, "settings is NoneType, expected dict"),
        ("notes", "none", "notes is str, expected dict"),
        ("settings.encoder", 5, "encoder is 5; expected a section with a name"),
        ("settings.encoder.name", "bilsm", "unknown encoder 'bilsm'. Did you mean 'bilstm'?"),
        ("settings.encoder.name", ["bilstm"], "unknown encoder ['bilstm']"),
        ("settings.pooling.heads", "2", "pooling.heads is '2'; expected a whole number"),
        ("settings.pooling.heads", 0, "heads is 0; expected a whole number of 1 or more"),
        ("settings.pooling.depth", 1, "unknown option of pooling 'generalized' 'depth'"),
        ("settings.embedding.dropout", 1.5, "embedding.dropout is 1.5; expected a number below"),
        ("settings.embedding.dropout", float("nan"), "embedding.dropout is nan"),
        ("settings.text.max_length", 0, "text.max_length is 0; expected 1 or more"),
        ("settings.surprise", {}, "unknown setting 'surprise'"),
    ],
)
def test_a_wrong_value_in_the_config_is_refused_by_name(folder, keys, value, expected) -> None:
    change_json(folder / "config.json", keys, value)
    message = refusal(folder)
    assert str(folder) in message and expected in message


@pytest.mark.parametrize("name", ["settings", "characters", "labels"])
def test_a_config_without_one_of_its_parts_is_refused(folder: Path, name: str) -> None:
    path = folder / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content[name]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert f"{name} is NoneType" in refusal(folder)


def test_all_wrong_settings_of_a_folder_are_reported_together(folder: Path) -> None:
    change_json(folder / "config.json", "settings.pooling.heads", 0)
    change_json(folder / "config.json", "settings.embedding.dropout", 2)
    message = refusal(folder)
    assert "2 settings are wrong" in message and "heads is 0" in message and "dropout" in message


def places(content: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside nested dictionaries and lists."""
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            yield (*way, key)
            yield from places(value, (*way, key))


ANYTHING: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 3, 10**9, 10**30, 0.5, float("inf"), "", "x", "gru", [], [0], {}, [[]]]
)


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_whatever_stands_in_a_config_it_loads_or_gets_an_error_of_genpool(saved, data) -> None:
    content = json.loads((saved / "config.json").read_text(encoding="utf-8"))
    copied = saved.parent / "any"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(saved, copied)
    *way, last = data.draw(st.sampled_from(list(places(content))))
    changed = copy.deepcopy(content)
    place = changed
    for key in way:
        place = place[key]
    place[last] = data.draw(ANYTHING)
    (copied / "config.json").write_text(json.dumps(changed), encoding="utf-8")
    try:
        loaded = cast(PairClassifier, load_model(copied))
    except GenpoolError as error:
        assert str(copied) in str(error)
    else:
        assert np.isfinite(loaded.predict_proba(PAIRS)).all()

"""Folders of a selection: readable, allowed on every system, and one for each combination."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool.training.selection import folder_name, select
from tests.helpers.training_runs import RECIPE


@pytest.mark.parametrize("value", ["1", "0.05", "1e-9", "generalized", "source-to-token", "true"])
def test_simple_values_name_their_folder(value: str) -> None:
    assert folder_name({"a.b": value}) == f"a.b={value}"


values = st.text(min_size=1, max_size=60)


@given(st.lists(st.tuples(values, values), min_size=2, max_size=2, unique=True))
def test_other_values_have_names_that_every_system_allows_and_none_is_shared(
    combinations: list[tuple[str, str]],
) -> None:
    names = [
        folder_name({"vectors.path": one, "embedding.character_widths": other})
        for one, other in combinations
    ]
    for name in names:
        assert not set(name) & set('<>:"/\\|?*\0')
        assert name.isascii() and name.isprintable()
        assert name[-1] not in ". " and len(name) <= 200
    assert names[0].casefold() != names[1].casefold()


def test_a_path_as_a_value_is_readable_in_the_name_of_its_folder(
    tables: Path, tmp_path: Path, no_pictures
) -> None:
    assert folder_name({"vectors.path": "data/glove.6B.txt"}).startswith(
        "vectors.path=data-glove-6b-txt-"
    )
    words = [tmp_path / "a" / "words.txt", tmp_path / "b" / "words.txt"]
    for path in words:
        path.parent.mkdir()
        path.write_text(f"film {' '.join(['1'] * 12)}\n")
    selection = f"vectors.path={words[0]},{words[1]}"
    choice = select(
        *(RECIPE, ["training.epochs=1"], selection, tables, tmp_path / "runs"),
        show_progress=False,
    )
    assert len([entry for entry in (tmp_path / "runs").iterdir() if entry.is_dir()]) == 2
    assert choice.model.is_dir()
    assert choice.model.parent.parent == tmp_path / "runs"

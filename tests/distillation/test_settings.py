"""The settings of a distillation, and their old names."""

from __future__ import annotations

import warnings

import pytest

from genpool.distillation import read_distillation
from genpool.distillation.settings import require_trainable
from genpool.errors import ConfigError

TEACHER = '[teacher]\nmodel = "a-teacher"\n'


def test_old_names_of_settings_are_read_with_one_warning_that_names_them() -> None:
    recipe = TEACHER + '[corpus]\nleft_out = ["a.tsv:x"]\nshortest = 4\n'
    with pytest.warns(FutureWarning) as caught:
        old = read_distillation(recipe, ["corpus.longest=9"])
    assert len(caught) == 1
    for change in ("left_out is now corpus.exclude", "shortest is now corpus.min_words"):
        assert change in str(caught[0].message)
    assert "corpus.longest is now corpus.max_words" in str(caught[0].message)
    new = TEACHER + '[corpus]\nexclude = ["a.tsv:x"]\nmin_words = 4\nmax_words = 9\n'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_distillation(new) == old


def test_an_override_wins_over_the_recipe_under_whichever_name() -> None:
    recipe = TEACHER + "[corpus]\nshortest = 4\n"
    with pytest.warns(FutureWarning):
        assert read_distillation(recipe, ["corpus.min_words=2"]).corpus.min_words == 2
    recipe = TEACHER + "[corpus]\nmin_words = 4\n"
    with pytest.warns(FutureWarning):
        assert read_distillation(recipe, ["corpus.shortest=2"]).corpus.min_words == 2


def test_both_names_of_a_setting_are_a_mistake() -> None:
    recipe = TEACHER + "[corpus]\nshortest = 4\nmin_words = 5\n"
    with (
        pytest.warns(FutureWarning),
        pytest.raises(ConfigError, match=r"corpus\.shortest is the old name of corpus\.min_words"),
    ):
        read_distillation(recipe)


def test_a_new_student_needs_vectors_or_a_word_table_that_is_trained() -> None:
    with pytest.raises(ConfigError, match="the word table would stay random"):
        require_trainable(read_distillation(TEACHER))
    ways_out = ("vectors.path=glove.txt", "embedding.frozen=false", "training.start=runs/earlier")
    for way_out in ways_out:
        require_trainable(read_distillation(TEACHER, [way_out]))

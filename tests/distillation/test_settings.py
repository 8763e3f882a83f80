"""The settings of a distillation."""

from __future__ import annotations

import pytest

from genpool.distillation import read_distillation
from genpool.distillation.settings import require_trainable
from genpool.errors import ConfigError

TEACHER = '[teacher]\nmodel = "a-teacher"\n'


def test_a_new_student_needs_vectors_or_a_word_table_that_is_trained() -> None:
    with pytest.raises(ConfigError, match="the word table would stay random"):
        require_trainable(read_distillation(TEACHER))
    ways_out = ("vectors.path=glove.txt", "embedding.frozen=false", "training.start=runs/earlier")
    for way_out in ways_out:
        require_trainable(read_distillation(TEACHER, [way_out]))

"""Short forms of the scripts beside this file: model folders, recipes, data files, sentences."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from genpool.config import TextSettings
from genpool.errors import GenpoolError, InputError

if sys.platform != "linux":
    pytest.skip("memory is read from /proc", allow_module_level=True)

from benchmarks.faults import cases, data_files, model_folders, sentences
from tests.helpers.small_models import MakeEncoder


def test_changed_folders_and_recipes_are_refused_or_loaded_rightly() -> None:
    for name, tally in model_folders.run(60):
        assert tally.problems == [], name
        assert tally.counts["refused"] > 30 and tally.counts.total() == 60


@pytest.mark.parametrize("name", ["snli", "yelp", "age", "table.csv", "table.tsv.zip", "vectors"])
def test_changed_data_files_are_refused_by_name_or_read(name: str) -> None:
    ((_, tally),) = data_files.run(40, (name,))
    assert tally.problems == []
    assert tally.counts.total() == 40 and tally.counts["read"] < 40


@pytest.mark.parametrize("folding", [False, True])
def test_a_sentence_of_any_characters_has_one_finite_vector(
    make_encoder: MakeEncoder, folding: bool
) -> None:
    encoder = make_encoder(text=TextSettings(max_length=20, folding=folding))
    assert encoder.text.tokenizer.folding == folding
    tally = sentences.run(encoder, 8 * sentences.BATCH)
    assert tally.problems == []
    assert tally.counts == {"same vectors": 8}


def test_every_kind_of_failure_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of the checks: each of these must be a problem, and the cases behind it still run."""

    def case(number: int) -> str:
        if number == 1:
            raise InputError("in words")
        if number == 2:
            raise ZeroDivisionError
        if number == 3:
            os.kill(os.getpid(), 9)
        if number == 4:
            while True:
                pass
        if number == 5:
            os.system("true")
        if number == 6:
            _ = bytearray(3 * 2**30)
        return "fine"

    monkeypatch.chdir(tmp_path)
    tally = cases.run_cases(case, 8, (GenpoolError,), seconds=1)
    assert tally.counts == {
        "fine": 2,
        "refused": 1,
        "traceback": 2,
        "died": 1,
        "wrong": 1,
        "forbidden": 1,
    }
    shown = "\n".join(tally.problems)
    for expected in ("case 2: Trace", "case 3: the process died", "case 4: it took too long"):
        assert expected in shown
    assert "it led to os.system" in shown and "MemoryError" in shown
    assert "problems: 5" in str(tally)

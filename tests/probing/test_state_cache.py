"""States on disk: computed once, continued after any stop, and never those of another encoder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.errors import FolderError
from genpool.probing.genpool_states import GenpoolTokenEncoder
from genpool.probing.state_cache import CARD, INDEX, RECORD, STATES, StateCache, default_cache
from genpool.probing.token_encoder import StateArray
from genpool.probing.token_states import TokenStates, encode_states
from tests.helpers.small_models import MakeEncoder

TEXTS = ["the dog runs", "", "a man sleeps , a dog rests .", "red", "not two \ud800"]


class Counting(GenpoolTokenEncoder):
    """Notes the texts that were encoded."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        super().__init__(encoder)
        self.encoded: list[str] = []

    def states(self, texts: Sequence[str]) -> list[StateArray]:
        self.encoded += texts
        return super().states([text.replace("\ud800", "?") for text in texts])


def assert_same(actual: TokenStates, expected: TokenStates) -> None:
    assert actual.lengths.tolist() == expected.lengths.tolist()
    everything = np.arange(len(actual))
    for one, other in zip(actual.batch(everything), expected.batch(everything), strict=True):
        if isinstance(one, type(actual.batch(everything)[0])):
            np.testing.assert_array_equal(one, other)


def test_states_are_the_same_as_in_memory_and_mapped_from_the_file(
    encoder: SentenceEncoder, tmp_path: Path
) -> None:
    counting = Counting(encoder)
    states = StateCache(tmp_path, counting).states(TEXTS)
    assert isinstance(states.rows, np.memmap)
    assert_same(states, encode_states(counting, TEXTS))


def test_a_text_is_encoded_once_for_all_data_that_contain_it(
    encoder: SentenceEncoder, tmp_path: Path
) -> None:
    first = Counting(encoder)
    StateCache(tmp_path, first).states([*TEXTS, *TEXTS])
    assert sorted(first.encoded) == sorted(TEXTS)
    again = Counting(encoder)
    states = StateCache(tmp_path, again).states([*reversed(TEXTS), "two red man"])
    assert again.encoded == ["two red man"]
    assert_same(states, encode_states(again, [*reversed(TEXTS), "two red man"]))


@pytest.mark.parametrize("lost_records", [1, 2, 4])
@pytest.mark.parametrize("torn_bytes", [0, 5, RECORD.itemsize - 1])
def test_a_run_that_was_stopped_continues(
    encoder: SentenceEncoder, tmp_path: Path, lost_records: int, torn_bytes: int
) -> None:
    """The index lacks its last records, and ends within one; the states are longer than it says."""
    cache = StateCache(tmp_path, Counting(encoder))
    cache.states(TEXTS)
    index = cache.folder / INDEX
    end = (len(TEXTS) - lost_records) * RECORD.itemsize + torn_bytes
    index.write_bytes(index.read_bytes()[:end])
    with (cache.folder / STATES).open("ab") as file:
        file.write(b"half a state")
    again = Counting(encoder)
    states = StateCache(tmp_path, again).states(TEXTS)
    assert len(again.encoded) == lost_records
    assert_same(states, encode_states(again, TEXTS))
    assert_same(StateCache(tmp_path, again).states(TEXTS), encode_states(again, TEXTS))


def test_two_writers_do_not_disturb_each_other(encoder: SentenceEncoder, tmp_path: Path) -> None:
    one, other = StateCache(tmp_path, Counting(encoder)), StateCache(tmp_path, Counting(encoder))
    one.states(TEXTS[:2])
    other.states(TEXTS[2:])
    assert_same(one.states(TEXTS), encode_states(Counting(encoder), TEXTS))
    assert_same(other.states(TEXTS), encode_states(Counting(encoder), TEXTS))


def test_every_encoder_has_its_own_folder(
    encoder: SentenceEncoder, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    one = StateCache(tmp_path, Counting(encoder))
    other = StateCache(tmp_path, Counting(make_encoder(seed=4)))
    assert one.folder != other.folder


def test_no_texts_and_texts_without_tokens_have_states(
    encoder: SentenceEncoder, tmp_path: Path
) -> None:
    cache = StateCache(tmp_path, Counting(encoder))
    assert len(cache.states([])) == 0
    assert cache.states([""]).lengths.tolist() == [0]
    assert cache.size_bytes == 0


def test_progress_counts_every_text(encoder: SentenceEncoder, tmp_path: Path) -> None:
    counts: list[int] = []
    cache = StateCache(tmp_path, Counting(encoder))
    cache.states(TEXTS[:3], counts.append)
    assert sum(counts) == 3
    counts.clear()
    cache.states(TEXTS, counts.append)
    assert sum(counts) == len(TEXTS) and counts[0] == 3


def test_a_file_of_states_that_was_cut_is_noticed(encoder: SentenceEncoder, tmp_path: Path) -> None:
    cache = StateCache(tmp_path, Counting(encoder))
    cache.states(TEXTS)
    (cache.folder / STATES).write_bytes(b"")
    with pytest.raises(FolderError, match=r"Remove the folder"):
        StateCache(tmp_path, Counting(encoder)).states(TEXTS)


def test_a_card_of_something_else_is_refused(encoder: SentenceEncoder, tmp_path: Path) -> None:
    cache = StateCache(tmp_path, Counting(encoder))
    path = cache.folder / CARD
    card = json.loads(path.read_text())
    path.write_text(json.dumps({**card, "dim": 7}))
    with pytest.raises(FolderError, match="Choose another folder"):
        StateCache(tmp_path, Counting(encoder))
    path.write_text(json.dumps({**card, "format_version": 9}))
    with pytest.raises(FolderError, match="version 9"):
        StateCache(tmp_path, Counting(encoder))
    path.write_text("{")
    with pytest.raises(FolderError, match="not JSON"):
        StateCache(tmp_path, Counting(encoder))


def test_a_place_that_is_a_file_is_refused(encoder: SentenceEncoder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="cannot be used as a cache"):
        StateCache(tmp_path / "file", Counting(encoder))


def test_the_default_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENPOOL_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("GENPOOL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "genpool" / "token-states"

"""States of many texts end to end, and batches of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.probing import token_states
from genpool.probing.probe_table import default_cache
from genpool.probing.token_encoders import open_token_encoder
from genpool.probing.token_states import TokenStates, cached_states, encode_states, open_state_cache
from tests.helpers.small_models import MakeEncoder

TEXTS = ["the dog runs", "", "a man sleeps , a dog rests .", "red", "the dog runs"]


def small_states() -> TokenStates:
    """Three texts of 2, 0 and 3 tokens, one layer, two dimensions: 0.0, 0.1, 1.0, 1.1, ..."""
    rows = np.array([[[token, token + 0.5]] for token in range(5)], dtype=np.float16)
    return TokenStates(rows, np.array([0, 2, 2]), np.array([2, 0, 3]))


def test_states_are_in_the_order_of_the_texts_and_equal_texts_encoded_once(
    encoder: SentenceEncoder,
) -> None:
    opened = open_token_encoder(encoder)
    states = encode_states(opened, TEXTS)
    for position, text in enumerate(TEXTS):
        (expected,) = opened.states([text])
        start, length = states.starts[position], states.lengths[position]
        np.testing.assert_array_equal(states.rows[start : start + length], expected)
    assert states.starts[0] == states.starts[4] and len(states.rows) == 3 + 0 + 8 + 1


def test_a_batch_unpacked_is_the_padded_states() -> None:
    states = small_states()
    assert sorted(np.concatenate(list(states.batches(2))).tolist()) == [0, 1, 2]
    rows, packing = states.batch(np.array([2, 1, 0]))
    padded = packing.unpack(rows.squeeze(1))  # (3, 3, 2)
    assert padded[0].tolist() == [[2, 2.5], [3, 3.5], [4, 4.5]]
    assert padded[1].tolist() == [[0, 0], [0, 0], [0, 0]]
    assert padded[2].tolist() == [[0, 0.5], [1, 1.5], [0, 0]]
    assert packing.mask().sum(dim=1).tolist() == [3, 0, 2]


def test_selected_texts_share_their_states() -> None:
    states = small_states()
    selected = states.select(np.array([2]))
    assert selected.rows is states.rows
    rows, _ = selected.batch(np.array([0]))
    assert rows[:, 0, 0].tolist() == [2, 3, 4]


def test_token_dropout_leaves_tokens_out_but_never_all_of_them() -> None:
    rows = np.arange(1000, dtype=np.float16).reshape(1000, 1, 1)
    states = TokenStates(rows, np.arange(0, 1000, 10), np.full(100, 10))
    everything = np.arange(100)
    random = torch.Generator().manual_seed(0)
    kept, packing = states.batch(everything, 0.5, random)
    assert 400 < len(kept) < 600
    assert len(set(kept.flatten().tolist())) == len(kept)  # no token twice
    owners = kept.flatten().div(10, rounding_mode="floor").long()
    assert torch.equal(owners, packing.sentence)  # each in its own text
    nearly_all, packing = states.batch(everything, 0.999, random)
    assert packing.mask().any(dim=1).all() and len(nearly_all) > 900


def test_cached_states_are_those_in_memory_and_each_text_is_encoded_once(
    encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_states, "WRITE_BYTES", 1)  # several writes
    monkeypatch.setattr(token_states, "ENCODING_BATCH", 2)
    opened = open_token_encoder(encoder)
    counts: list[int] = []
    for texts, earlier in [(TEXTS[:2], 0), (TEXTS, 3), ([], 0)]:
        counts.clear()
        cache = open_state_cache(tmp_path, opened)
        states = cached_states(cache, opened, texts, counts.append)
        assert sum(counts) == len(texts) and counts[0] == earlier
        expected = encode_states(opened, texts)
        assert states.lengths.tolist() == expected.lengths.tolist()
        if texts:
            everything = np.arange(len(texts))
            torch.testing.assert_close(states.batch(everything)[0], expected.batch(everything)[0])


def test_every_encoder_has_its_own_cache(
    encoder: SentenceEncoder, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    models = (encoder, make_encoder(seed=4))
    one, other = (open_state_cache(tmp_path, open_token_encoder(model)) for model in models)
    assert one.folder != other.folder


def test_the_default_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENPOOL_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("GENPOOL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "genpool" / "token-states"

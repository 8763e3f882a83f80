"""Token states of every kind of encoder, compared with the encoders; many of them, in batches."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.errors import FolderError, InputError
from genpool.integrations.probing import token_states
from genpool.integrations.probing.comparison import default_cache
from genpool.integrations.probing.token_states import (
    MAX_STATE,
    TokenStates,
    TransformerTokenEncoder,
    as_stored,
    encode_states,
    layer_numbers,
    open_state_cache,
    open_token_encoder,
)

SENTENCES = ["The dog runs.", "a man , not two dogs , sleeps", "", "red"]


def test_states_of_genpool_are_those_that_its_pooling_receives(encoder: SentenceEncoder) -> None:
    states = open_token_encoder(encoder).states(SENTENCES)
    for sentence, rows in zip(SENTENCES, states, strict=True):
        batch = encoder.text.batch([encoder.text.words(sentence)])
        with torch.no_grad():
            vectors = encoder.embedding(batch)  # (1, time, embedding)
            expected = encoder.encoder(vectors, batch.mask).states[0].numpy()
        assert rows.shape == (len(encoder.text.words(sentence)), 1, encoder.encoder.output_dim)
        np.testing.assert_allclose(rows[:, 0], expected, atol=1e-3)


def test_tokens_and_states_are_as_many(encoder: SentenceEncoder, bert_folder: Path) -> None:
    for name in (encoder, f"transformer:{bert_folder}"):
        opened = open_token_encoder(name)
        for sentence, rows in zip(SENTENCES, opened.states(SENTENCES), strict=True):
            assert len(opened.tokens(sentence)) == len(rows)


@pytest.mark.parametrize("layers", ["last", "all", [-1, 0]], ids=str)
def test_states_of_a_transformer_are_its_hidden_states(
    bert_folder: Path, layers: str | list[int]
) -> None:
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(bert_folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    numbers = {"last": [2], "all": [0, 1, 2]}.get(str(layers), layers)
    states = open_token_encoder(f"transformer:{bert_folder}", layers).states(SENTENCES)
    for sentence, rows in zip(SENTENCES, states, strict=True):
        with torch.no_grad():  # one sentence at a time, so without padding
            inputs = tokenizer(sentence, return_tensors="pt")
            hidden = model(**inputs, output_hidden_states=True).hidden_states
        expected = np.stack([hidden[number][0].numpy() for number in numbers], axis=1)
        np.testing.assert_allclose(rows, expected, atol=4e-3)


def test_word_pieces_have_their_place_in_the_text_and_special_tokens_none(
    bert_folder: Path,
) -> None:
    opened = open_token_encoder(f"transformer:{bert_folder}")
    tokens = opened.tokens("The dogs run.")
    assert [token.text for token in tokens][:4] == ["[CLS]", "the", "dog", "##s"]
    assert (tokens[0].start, tokens[0].end) == (-1, -1)
    assert "The dogs run."[tokens[2].start : tokens[2].end] == "dog"
    # Long texts are cut to what the transformer reads.
    assert [len(rows) for rows in opened.states(["dog " * 100, "dog"])] == [40, 3]
    assert len(opened.tokens("dog " * 100)) == 40
    short = TransformerTokenEncoder(bert_folder, max_tokens=5)
    assert [len(rows) for rows in short.states(["dog " * 100])] == [5]


def test_of_a_sentence_transformers_folder_the_first_module_is_read(
    bert_folder: Path, tmp_path: Path
) -> None:
    from tests.integrations.tiny_bert import tiny_model

    tiny_model(tmp_path / "bert").save(str(tmp_path / "saved"))
    plain = open_token_encoder(f"transformer:{tmp_path / 'bert'}")
    opened = open_token_encoder(tmp_path / "saved")
    assert opened.reference == str(tmp_path / "saved")
    for expected, rows in zip(plain.states(SENTENCES), opened.states(SENTENCES), strict=True):
        np.testing.assert_array_equal(rows, expected)


def test_a_genpool_encoder_inside_sentence_transformers_is_read(
    encoder: SentenceEncoder, tmp_path: Path
) -> None:
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer

    from genpool.integrations.sentence_transformers import SentenceEncoderModule

    SentenceTransformer(modules=[SentenceEncoderModule(encoder)]).save(str(tmp_path / "saved"))
    opened = open_token_encoder(tmp_path / "saved")
    assert opened.fingerprint == open_token_encoder(encoder).fingerprint


def test_the_fingerprint_depends_on_weights_layers_and_length(
    bert_folder: Path, tmp_path: Path
) -> None:
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(bert_folder)
    with torch.no_grad():
        next(model.parameters())[0, 0] += 1
    model.save_pretrained(tmp_path / "other")
    AutoTokenizer.from_pretrained(bert_folder).save_pretrained(tmp_path / "other")
    names = {
        TransformerTokenEncoder(bert_folder).fingerprint,
        TransformerTokenEncoder(bert_folder, layers="all").fingerprint,
        TransformerTokenEncoder(bert_folder, max_tokens=7).fingerprint,
        TransformerTokenEncoder(tmp_path / "other").fingerprint,
    }
    assert len(names) == 4
    again = TransformerTokenEncoder(bert_folder).fingerprint
    assert again in names


def test_values_beyond_half_precision_are_cut_to_its_limits() -> None:
    states, mask = torch.tensor([[[[1e30]], [[-1e30]], [[0.5]]]]), torch.ones(1, 3)
    assert as_stored(states, mask)[0].flatten().tolist() == [MAX_STATE, -MAX_STATE, 0.5]


def test_layers_that_do_not_exist_are_refused() -> None:
    layers: object
    for layers in ("first", [], [3], [-4], [1, 1], [2, -1], "0,x", 1):
        with pytest.raises(InputError, match=r"expected 'last', 'all', or different numbers"):
            layer_numbers(layers, 2)  # type: ignore[arg-type]
    assert layer_numbers("0,2", 2) == (0, 2)


def test_other_folders_than_those_of_encoders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="there is no such folder"):
        open_token_encoder(tmp_path / "missing")
    with pytest.raises(FolderError, match=r"no config.json"):
        open_token_encoder(f"transformer:{tmp_path}")
    outside = [{"path": "../elsewhere", "type": "sentence_transformers.models.Transformer"}]
    for content, problem in [
        ("[]", "expected a list of modules"),
        ("{", "expected a list of modules"),
        (json.dumps(outside), "outside of the folder"),
    ]:
        (tmp_path / "modules.json").write_text(content)
        with pytest.raises(FolderError, match=problem):
            open_token_encoder(tmp_path)


def test_a_pickle_is_not_opened(bert_folder: Path, tmp_path: Path) -> None:
    for file in bert_folder.iterdir():
        if file.suffix == ".json" or file.suffix == ".txt":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(FolderError, match="cannot be loaded by transformers"):
        open_token_encoder(f"transformer:{tmp_path}")


# --- The states of many texts ---------------------------------------------------------------------

TEXTS = ["the dog runs", "", "a man sleeps , a dog rests .", "red", "the dog runs"]


def test_states_are_in_the_order_of_the_texts_and_equal_texts_encoded_once(
    encoder: SentenceEncoder,
) -> None:
    opened = open_token_encoder(encoder)
    states = encode_states(opened, TEXTS)
    for position, text in enumerate(TEXTS):
        (expected,) = opened.states([text])
        start, length = states.places[position]
        np.testing.assert_array_equal(states.rows[start : start + length], expected)
    assert states.places[0, 0] == states.places[4, 0] and len(states.rows) == 3 + 0 + 8 + 1


def test_a_batch_unpacked_is_the_padded_states_and_selected_texts_share_them() -> None:
    # Three texts of 2, 0 and 3 tokens, one layer, two dimensions.
    rows = np.array([[[token, token + 0.5]] for token in range(5)], dtype=np.float16)
    states = TokenStates(rows, np.array([[0, 2], [2, 0], [2, 3]]))
    assert sorted(np.concatenate(list(states.batches(2))).tolist()) == [0, 1, 2]
    batch, packing = states.batch(np.array([2, 1, 0]))
    padded = packing.unpack(batch.squeeze(1))  # (3, 3, 2)
    assert padded[0].tolist() == [[2, 2.5], [3, 3.5], [4, 4.5]]
    assert padded[1].tolist() == [[0, 0], [0, 0], [0, 0]]
    assert padded[2].tolist() == [[0, 0.5], [1, 1.5], [0, 0]]
    assert packing.mask().sum(dim=1).tolist() == [3, 0, 2]
    selected = states[np.array([2])]
    assert selected.rows is states.rows
    batch, _ = selected.batch(np.array([0]))
    assert batch[:, 0, 0].tolist() == [2, 3, 4]


def test_token_dropout_leaves_tokens_out_but_never_all_of_them() -> None:
    rows = np.arange(1000, dtype=np.float16).reshape(1000, 1, 1)
    states = TokenStates(rows, np.stack([np.arange(0, 1000, 10), np.full(100, 10)], axis=1))
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
        states = encode_states(opened, texts, cache, counts.append)
        assert sum(counts) == len(texts) and counts[0] == earlier
        expected = encode_states(opened, texts)
        assert states.places[:, 1].tolist() == expected.places[:, 1].tolist()
        if texts:
            everything = np.arange(len(texts))
            torch.testing.assert_close(states.batch(everything)[0], expected.batch(everything)[0])


def test_the_default_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENPOOL_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("GENPOOL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "genpool" / "token-states"

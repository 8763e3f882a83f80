"""The saved folder: what is in it, what a faulty one gets, and that saving is all or nothing."""

from __future__ import annotations

import builtins
import copy
import errno
import io
import json
import os
import pickle
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import models
from torch.utils._python_dispatch import TorchDispatchMode

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.config import TextSettings
from genpool.encoder.bilstm import BiLSTMLayer
from genpool.errors import FolderError, GenpoolError
from genpool.model import load_model
from genpool.saving import storage
from genpool.text import WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS

FILES = {"config.json", "model.safetensors", "tokenizer.json", "README.md"}
PAIRS = [("a dog runs .", "the man"), ("two red men", ""), ("🐕", "not a dog")]


@pytest.fixture(scope="module")
def saved(make_encoder, tmp_path_factory) -> Path:
    """A saved pair classifier; tests change copies of it."""
    encoder = make_encoder(text=TextSettings(rules="whitespace"))
    path = tmp_path_factory.mktemp("saved") / "model"
    PairClassifier(encoder, ["yes", "no", "perhaps"]).save_pretrained(path)
    return path


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "model")
    return tmp_path / "model"


def change_json(path: Path, keys: str, value: Any) -> None:
    """Sets a value by its dotted name."""
    content = json.loads(path.read_text(encoding="utf-8"))
    place = content
    *way, last = keys.split(".")
    for key in way:
        place = place[key]
    place[last] = value
    path.write_text(json.dumps(content), encoding="utf-8")


def refusal(folder: Path) -> str:
    """What loading says; both ways of loading must say the same."""
    messages = []
    for load in (PairClassifier.from_pretrained, load_model):
        with pytest.raises(FolderError) as caught:
            load(folder)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0]


# ---------------------------------------------------------------- what is in the folder


def test_a_saved_folder_holds_its_four_files_and_nothing_is_left_beside_it(folder: Path) -> None:
    assert {each.name for each in folder.iterdir()} == FILES
    assert [each.name for each in folder.parent.iterdir()] == ["model"]


def test_the_config_says_format_version_kind_settings_labels_and_characters(folder) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["format"] == "genpool" and config["format_version"] == 1
    assert config["kind"] == "PairClassifier"
    assert config["labels"] == ["yes", "no", "perhaps"]
    assert set(config["characters"]) == set("theamandogsleepsrestsrunsrednottwo.,")
    assert config["settings"]["pooling"]["name"] == "generalized"
    assert config["settings"]["pooling"]["heads"] == 2
    assert config["notes"] == {}


def test_every_option_is_written_out_with_its_default(make_encoder, tmp_path: Path) -> None:
    make_encoder("last", "gru").save_pretrained(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["settings"]["encoder"] == {"name": "gru", "hidden_dim": 5, "layers": 1}
    assert config["settings"]["pooling"] == {"name": "last", "bidirectional": False}
    assert config["settings"]["embedding"] == {
        "word_dim": 4,
        "frozen": True,
        "characters": True,
        "character_dim": 3,
        "character_widths": [1, 2],
        "character_maps": 2,
        "dropout": 0.5,
    }
    assert "classifier" not in config["settings"]


def test_the_weights_are_those_of_the_model_by_name(folder: Path) -> None:
    model = PairClassifier.from_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    assert set(stored) == set(model.state_dict())
    assert all(torch.equal(stored[name], each) for name, each in model.state_dict().items())


def test_the_tokenizer_can_be_used_without_genpool(sentence_encoder, tmp_path: Path) -> None:
    sentence_encoder.save_pretrained(tmp_path / "model")
    alone = tokenizers.Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    text = sentence_encoder.text
    encoding = alone.encode("the dog runs, zebra.")
    words = text.words("the dog runs, zebra.")
    assert encoding.ids == [text.vocabulary.id(word) for word in words]
    assert encoding.offsets == [(0, 3), (4, 7), (8, 12), (12, 13), (14, 19), (19, 20)]


def test_a_path_may_be_a_string_and_its_parents_need_not_exist(sentence_encoder, tmp_path) -> None:
    path = str(tmp_path / "deep" / "er" / "model")
    sentence_encoder.save_pretrained(path)
    assert isinstance(SentenceEncoder.from_pretrained(path), SentenceEncoder)


def test_words_and_labels_of_any_script_come_back(make_text, make_settings, tmp_path) -> None:
    text = make_text()
    text.vocabulary = type(text.vocabulary)(
        [*SPECIAL_WORDS, "Hündin", "犬", "🐕", '"', "a\\b", "\n"]
    )
    text.characters = type(text.characters)("üé犬🐕\"\\\n\u2028'")
    model = TextClassifier(SentenceEncoder(text, make_settings()), ["да", "no|n"]).eval()
    model.save_pretrained(tmp_path / "model")
    loaded = TextClassifier.from_pretrained(tmp_path / "model")
    assert loaded.labels == ("да", "no|n")
    assert loaded.text.vocabulary.words == text.vocabulary.words
    assert loaded.text.characters.characters == text.characters.characters


# ---------------------------------------------------------------- faulty folders


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path / 'nowhere'}: there is no such folder" in refusal(tmp_path / "nowhere")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("x")
    assert "there is no such folder" in refusal(tmp_path / "model")


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    message = refusal(tmp_path)
    assert "has no config.json, so it is not a genpool model. It has: nothing." in message


def test_a_folder_of_other_files_is_no_model_and_they_are_listed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    assert "It has: thesis.tex." in refusal(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("as_folder", [False, True])
def test_each_missing_file_is_named(folder: Path, name: str, as_folder: bool) -> None:
    (folder / name).unlink()
    if as_folder:
        (folder / name).mkdir()
    message = refusal(folder)
    assert str(folder) in message and name in message


def test_two_missing_files_are_named_together(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "tokenizer.json").unlink()
    expected = f"{folder} is incomplete: model.safetensors and tokenizer.json missing."
    assert refusal(folder) == expected


def test_the_card_is_not_needed_to_load(folder: Path) -> None:
    (folder / "README.md").unlink()
    assert isinstance(load_model(folder), PairClassifier)


def test_a_newer_format_is_refused_with_the_remedy(folder: Path) -> None:
    change_json(folder / "config.json", "format_version", 3)
    message = refusal(folder)
    assert "has format version 3; this genpool reads 1 to 2" in message
    assert "pip install --upgrade genpool" in message


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, None, True, [1]])
def test_a_version_that_is_none_is_refused(folder: Path, version: object) -> None:
    change_json(folder / "config.json", "format_version", version)
    assert f"has format version {version!r}" in refusal(folder)


@pytest.mark.parametrize("kind", ["Pickle", "pairclassifier", "", None, 5, [], {}])
def test_an_unknown_kind_is_refused(folder: Path, kind: object) -> None:
    change_json(folder / "config.json", "kind", kind)
    with pytest.raises(FolderError, match="expected one of SentenceEncoder, TextClassifier, Pair"):
        load_model(folder)
    with pytest.raises(FolderError, match="expected a PairClassifier"):
        PairClassifier.from_pretrained(folder)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[1, 2", "not json", '{"format": "genpool",}', "\x00", "[" * 100_000],
    ids=["nothing", "cut", "cut list", "words", "comma", "zero", "deep"],
)
def test_a_config_that_is_not_json_is_refused(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    assert f"{folder / 'config.json'} is not JSON" in refusal(folder)


def test_a_config_that_is_not_utf8_is_refused(folder: Path) -> None:
    (folder / "config.json").write_bytes(b'{"format": "\xff\xfe"}')
    assert "is not JSON" in refusal(folder)


@pytest.mark.parametrize("content", ["[]", "5", '"genpool"', "null", "{}", '{"format": "other"}'])
def test_json_of_another_kind_is_refused(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    message = refusal(folder)
    assert "is not of a genpool model" in message and '"format": "genpool"' in message


def test_the_folder_of_another_library_is_refused_by_its_model_type(folder: Path) -> None:
    bert = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 768}
    (folder / "config.json").write_text(json.dumps(bert))
    message = refusal(folder)
    assert "model type: bert" in message and "another library" in message


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        ("settings.pooling.heads", 3, "pooling.w1 is (2, 4, 6), the settings say (3, 4, 6)"),
        ("settings.pooling", {"name": "mean"}, "pooling.w1 is not part of it"),
        ("settings.encoder.layers", 3, "encoder.layers.2.forwards.w is missing"),
        ("settings.encoder.layers", 1, "encoder.layers.1.backwards.b is not part of it"),
        ("settings.embedding.word_dim", 5, "words is (16, 4), the settings say (16, 5)"),
        ("settings.embedding.characters", False, "spelling.letters is not part of it"),
        ("settings.classifier.hidden_dim", 6, "mlp.first.bias is (5,), the settings say (6,)"),
        ("labels", ["a", "b"], "mlp.output.bias is (3,), the settings say (2,)"),
        ("characters", "abc", "spelling.letters is (21, 3), the settings say (7, 3)"),
    ],
)
def test_sizes_that_do_not_agree_are_refused_with_both(folder, keys, value, expected) -> None:
    change_json(folder / "config.json", keys, value)
    message = refusal(folder)
    assert f"{folder / 'model.safetensors'} does not agree with config.json" in message
    assert expected in message


def test_differences_are_counted_and_not_all_listed(folder: Path) -> None:
    change_json(folder / "config.json", "settings.encoder.hidden_dim", 4)
    message = refusal(folder)
    # 2 layers x 2 directions x (w, u, b), then w1, w2 and b2 of the pooling, and two of the MLP.
    assert "(17 differences)" in message and message.count("the settings say") == 5
    assert "Were files of two models mixed?" in message


@pytest.mark.parametrize("more", [True, False])
def test_a_vocabulary_of_another_size_than_the_table_is_refused(folder: Path, more: bool) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    if more:
        vocabulary["zebra"] = len(vocabulary)
    else:
        vocabulary.pop(next(word for word, number in vocabulary.items() if number == 15))
    path.write_text(json.dumps(content), encoding="utf-8")
    size = 17 if more else 15
    assert f"embedding.words is (16, 4), the settings say ({size}, 4)" in refusal(folder)


@pytest.mark.parametrize("fault", ["missing", "more", "shape", "integers"])
def test_tensors_other_than_the_settings_call_for_are_refused(folder: Path, fault: str) -> None:
    weights = load_file(folder / "model.safetensors")
    if fault == "missing":
        del weights["encoder.pooling.b2"]
    elif fault == "more":
        weights["surprise"] = torch.zeros(3)
    elif fault == "shape":
        weights["encoder.pooling.b2"] = weights["encoder.pooling.b2"].T.contiguous()
    else:
        weights["encoder.pooling.b2"] = weights["encoder.pooling.b2"].long()
    save_file(weights, folder / "model.safetensors")
    expected = {
        "missing": "(1 differences): encoder.pooling.b2 is missing",
        "more": "(1 differences): surprise is not part of it",
        "shape": "encoder.pooling.b2 is (6, 2), the settings say (2, 6)",
        "integers": "encoder.pooling.b2 holds I64, expected floating-point numbers",
    }
    assert expected[fault] in refusal(folder)


class Allocations(TorchDispatchMode):
    """The largest tensor, in bytes, that was made in real memory."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, torch.Tensor) and not each.is_meta:
                self.largest = max(self.largest, each.numel() * each.element_size())
        return result


HUGE = [
    ("settings.pooling.heads", 10**9),
    ("settings.pooling.hidden_dim", 10**9),
    ("settings.encoder.hidden_dim", 10**9),
    ("settings.encoder.layers", 10**9),
    ("settings.encoder", {"name": "shortcut-stacked", "hidden_dims": [3, 10**9]}),
    ("settings.encoder", {"name": "cnn", "maps": 10**9, "widths": [3]}),
    ("settings.encoder", {"name": "cnn", "maps": 3, "widths": [10**9]}),
    ("settings.encoder", {"name": "gru", "layers": 10**9}),
    ("settings.embedding.word_dim", 10**9),
    ("settings.embedding.character_maps", 10**9),
    ("settings.embedding.character_widths", [10**9]),
    ("settings.embedding.character_dim", 10**9),
    ("settings.classifier.hidden_dim", 10**9),
    ("settings.pooling.heads", 10**18),
    ("settings.embedding.character_maps", 10**18),
    ("settings.classifier.hidden_dim", 10**18),
    ("settings.embedding.word_dim", 10**30),
    ("settings.pooling.heads", 10**30),
]


@pytest.mark.parametrize(("keys", "value"), HUGE, ids=str)
def test_nothing_is_allocated_before_sizes_are_known_to_agree(
    folder: Path, monkeypatch, keys: str, value: Any
) -> None:
    layers = iter(range(100))
    make_layer = BiLSTMLayer.__init__

    def few_layers(self, *args):
        next(layers)  # StopIteration, which is no FolderError, at the hundredth
        make_layer(self, *args)

    monkeypatch.setattr(BiLSTMLayer, "__init__", few_layers)
    change_json(folder / "config.json", keys, value)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Allocations() as allocations, pytest.raises(FolderError) as caught:
        PairClassifier.from_pretrained(folder)
    assert str(folder) in str(caught.value)
    assert allocations.largest < 10_000
    # Kilobytes on Linux, bytes on a Mac: in both, less than the smallest of the tensors above.
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert grown < 500_000


def test_the_watch_on_allocations_sees_what_loading_takes(folder: Path) -> None:
    with Allocations() as allocations:
        torch.zeros(3000)
    assert allocations.largest == 12_000


class Evil:
    """A pickle of this runs code when it is opened."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self):
        return (os.mkdir, (str(self.witness),))


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_pickle_in_place_of_safetensors_is_named_and_not_opened(folder, tmp_path, protocol):
    (folder / "model.safetensors").write_bytes(pickle.dumps(Evil(tmp_path / "run"), protocol))
    message = refusal(folder)
    assert f"{folder / 'model.safetensors'} holds a pickle, which could run code" in message
    assert "it was not opened" in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_save_writes_is_named_as_a_pickle(folder: Path, tmp_path, zipped: bool) -> None:
    content = {"weights": torch.zeros(2), "evil": Evil(tmp_path / "run")}
    torch.save(content, folder / "model.safetensors", _use_new_zipfile_serialization=zipped)
    assert "holds a pickle" in refusal(folder)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("protocol", [0, 1])
def test_an_old_pickle_is_refused_too(folder: Path, tmp_path: Path, protocol: int) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Evil(tmp_path / "run"), protocol))
    assert "is not a whole safetensors file" in refusal(folder)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl", "model.pth"])
def test_a_folder_with_only_a_pickle_is_told_that_it_is_never_opened(folder, tmp_path, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Evil(tmp_path / "run")))
    message = refusal(folder)
    assert "incomplete: model.safetensors missing." in message
    assert f"{name} is a pickle, which genpool never opens." in message
    assert not (tmp_path / "run").exists()


def test_weights_that_are_cut_off_anywhere_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    cuts = [0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(whole) - 1]
    for cut in cuts:
        path.write_bytes(whole[:cut])
        with pytest.raises(FolderError, match="is not a whole safetensors file") as caught:
            PairClassifier.from_pretrained(folder)
        assert str(path) in str(caught.value)
    path.write_bytes(whole + b"\0")
    with pytest.raises(FolderError, match="is not a whole safetensors file"):
        PairClassifier.from_pretrained(folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"<html>", b"{" * 1000, b"\xff" * 1000])
def test_a_damaged_tokenizer_is_refused(folder: Path, content: bytes) -> None:
    (folder / "tokenizer.json").write_bytes(content)
    assert f"{folder / 'tokenizer.json'} cannot be read" in refusal(folder)


def test_a_tokenizer_that_is_cut_off_is_refused(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert "cannot be read" in refusal(folder)


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    foreign = WordTokenizer("whitespace").to_tokenizers({"[UNK]": 0, "dog": 1}, "[UNK]")
    foreign.save(str(folder / "tokenizer.json"))
    assert "a vocabulary begins with ('<pad>', '<unk>', '<s>', '</s>')" in refusal(folder)


def test_a_tokenizer_without_rules_is_refused(folder: Path) -> None:
    words = {word: number for number, word in enumerate(SPECIAL_WORDS)}
    bare = tokenizers.Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    bare.save(str(folder / "tokenizer.json"))
    assert "does not say how to split a sentence" in refusal(folder)


def test_a_tokenizer_with_rules_of_its_own_splits_by_them(sentence_encoder, tmp_path) -> None:
    sentence_encoder.save_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "tokenizer.json"
    rules = {"type": "Split", "pattern": {"String": "-"}, "behavior": "Removed", "invert": False}
    change_json(path, "pre_tokenizer", rules)
    loaded = SentenceEncoder.from_pretrained(tmp_path / "model")
    assert loaded.text.words("a-red dog") == ["a", "red dog"]
    loaded.save_pretrained(tmp_path / "again")
    again = SentenceEncoder.from_pretrained(tmp_path / "again")
    assert again.text.words("a-red dog") == ["a", "red dog"]


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        ("characters", ["a", "b"], "characters is list, expected str"),
        ("characters", 5, "characters is int, expected str"),
        ("characters", None, "characters is NoneType, expected str"),
        ("characters", "aa", "the character 'a' stands more than once"),
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


ANYTHING = st.sampled_from(
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
        loaded = load_model(copied)
    except GenpoolError as error:
        assert str(copied) in str(error)
    else:
        assert np.isfinite(loaded.predict_proba(PAIRS)).all()


def test_a_disk_that_cannot_be_read_is_an_error_of_genpool(folder: Path, monkeypatch) -> None:
    def fails(*args, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", fails)
    assert f"{folder} cannot be read" in refusal(folder)


# ---------------------------------------------------------------- saving over something else


def content_of(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


@pytest.mark.parametrize("content", ["a thesis", '{"model_type": "bert"}', '{"format": "genpool"'])
@pytest.mark.parametrize("name", ["config.json", "thesis.tex", ".git"])
def test_saving_over_what_is_no_model_is_refused(sentence_encoder, tmp_path, name, content) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / name).write_text(content)
    with pytest.raises(FolderError, match="holds something else, which saving would replace") as e:
        sentence_encoder.save_pretrained(target)
    assert "Choose a new or empty folder" in str(e.value)
    assert content_of(tmp_path) == {f"mine/{name}": content.encode()}


def test_saving_over_a_model_of_a_newer_format_is_refused(sentence_encoder, folder: Path) -> None:
    change_json(folder / "config.json", "format_version", 3)
    before = content_of(folder)
    with pytest.raises(FolderError, match="has format version 3"):
        sentence_encoder.save_pretrained(folder)
    assert content_of(folder) == before


def test_saving_over_a_file_is_refused(sentence_encoder, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FolderError, match="is a file; expected a folder"):
        sentence_encoder.save_pretrained(tmp_path / "notes.txt")
    assert content_of(tmp_path) == {"notes.txt": b"mine"}


@pytest.mark.parametrize("path", [".", "..", "sub/.."])
def test_saving_in_place_of_the_working_folder_is_refused(
    sentence_encoder, tmp_path: Path, monkeypatch, path: str
) -> None:
    inside = tmp_path / "mine" / "deep"
    (inside / "sub").mkdir(parents=True)
    monkeypatch.chdir(inside)
    with pytest.raises(FolderError, match="is the working folder, or holds it"):
        sentence_encoder.save_pretrained(path)
    assert Path.cwd() == inside  # which is gone if the folder was replaced
    sentence_encoder.save_pretrained("model")
    assert isinstance(load_model("model"), SentenceEncoder)


def test_a_working_folder_that_is_gone_is_no_obstacle(
    sentence_encoder, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    sentence_encoder.save_pretrained(tmp_path / "model")
    assert isinstance(load_model(tmp_path / "model"), SentenceEncoder)


def test_saving_below_a_file_is_refused(sentence_encoder, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FolderError, match="could not be written"):
        sentence_encoder.save_pretrained(tmp_path / "notes.txt" / "model")
    assert content_of(tmp_path) == {"notes.txt": b"mine"}


def test_saving_into_an_empty_folder_and_over_a_model_works(sentence_encoder, folder) -> None:
    empty = folder.parent / "empty"
    empty.mkdir()
    for target in (empty, folder):
        sentence_encoder.save_pretrained(target)
        assert isinstance(load_model(target), SentenceEncoder)
        assert {each.name for each in target.iterdir()} == FILES


def test_files_of_others_stay_in_the_folder(sentence_encoder, folder: Path) -> None:
    (folder / "scores.tsv").write_text("93")
    (folder / ".hidden").write_text("x")
    (folder / "plots" / "deep").mkdir(parents=True)
    (folder / "plots" / "deep" / "curve.svg").write_text("<svg/>")
    (folder / "nothing").symlink_to("nowhere")
    (folder / "outside").symlink_to(folder.parent)
    os.utime(folder / "scores.tsv", (1000, 1000))
    for _ in range(2):
        sentence_encoder.save_pretrained(folder)
    assert (folder / "scores.tsv").read_text() == "93"
    assert (folder / "scores.tsv").stat().st_mtime == 1000
    assert (folder / ".hidden").read_text() == "x"
    assert (folder / "plots" / "deep" / "curve.svg").read_text() == "<svg/>"
    assert str((folder / "nothing").readlink()) == "nowhere"
    assert (folder / "outside").is_symlink() and (folder / "outside").readlink() == folder.parent
    assert isinstance(load_model(folder), SentenceEncoder)


def test_a_link_to_a_folder_stays_one_and_its_target_is_replaced(sentence_encoder, folder) -> None:
    link = folder.parent / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(folder)
    for _ in range(2):
        sentence_encoder.save_pretrained(link)
        assert link.is_symlink()
        assert isinstance(load_model(link), SentenceEncoder)
        assert isinstance(load_model(folder), SentenceEncoder)
    assert [each.name for each in link.parent.iterdir()] == ["link"]
    assert {each.name for each in folder.parent.iterdir()} == {"model", "elsewhere"}


# ---------------------------------------------------------------- saving is all or nothing


@pytest.fixture
def write(monkeypatch) -> Callable[[Path, int], None]:
    """Writes a folder in which every file says the same number; does not wait for the disk."""
    rules = WordTokenizer("whitespace")
    monkeypatch.setattr(os, "fsync", lambda file: None)

    def write(path: Path, number: int) -> None:
        words = {word: place for place, word in enumerate([*SPECIAL_WORDS, f"word{number}"])}
        storage.write_folder(
            path,
            {"format": "genpool", "format_version": 1, "number": number},
            {"weights": torch.full((500,), float(number))},
            rules.to_tokenizers(words, "<unk>"),
            f"card {number}",
        )

    return write


def number_of(path: Path) -> int:
    """The number that all files of a folder agree on."""
    folder = storage.read_folder(path)
    number = folder.config["number"]
    weights = folder.load_weights({"weights": (500,)})["weights"]
    assert torch.equal(weights, torch.full((500,), float(number)))
    assert f"word{number}" in folder.tokenizer.get_vocab()
    assert (path / "README.md").read_text() == f"card {number}"
    return number


class Mishap:
    """Lets the file system fail at one step: its n-th call, counted over all functions below.

    when: "before" the call takes place, or "after" it has. dead: all later calls fail as well, so
    that no cleaning up is possible: what is then on disk is what a kill would leave.
    """

    FUNCTIONS = (
        *((os, name) for name in ("mkdir", "rename", "replace", "fsync", "unlink", "rmdir")),
        *((os, name) for name in ("listdir", "scandir", "open", "stat", "lstat", "utime")),
        (io, "open"),
        (builtins, "open"),
        (storage, "save_file"),
    )

    def __init__(self, error: BaseException | None = None, step: int = 0) -> None:
        self.error, self.step = error, step
        self.when, self.dead = "before", False
        self.calls = 0

    def __enter__(self) -> Mishap:
        self.patch = pytest.MonkeyPatch()
        for module, name in self.FUNCTIONS:
            self.patch.setattr(module, name, self.watched(getattr(module, name)))
        return self

    def __exit__(self, *error: object) -> None:
        self.patch.undo()

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            now = self.calls == self.step or (self.dead and self.step < self.calls)
            if not now or self.error is None:
                return function(*args, **options)
            if self.when == "after":
                with suppress(OSError):
                    result = function(*args, **options)
                    if hasattr(result, "close"):
                        result.close()
            raise self.error

        return call


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def fresh(tmp_path: Path, write: Callable[[Path, int], None], number: int) -> Path:
    """A folder of its own with a model, number 1, and a file of somebody else."""
    target = tmp_path / str(number) / "model"
    write(target, 1)
    (target / "mine.txt").write_text("mine")
    (target / "plots").mkdir()
    (target / "plots" / "mine.svg").write_text("mine")
    return target


def steps_of_a_save(tmp_path: Path, write: Callable[[Path, int], None]) -> int:
    target = fresh(tmp_path, write, 0)
    with Mishap() as watch:
        write(target, 2)
    assert number_of(target) == 2
    return watch.calls


@pytest.mark.parametrize("dead", [False, True], ids=["once", "from then on"])
def test_a_failing_disk_at_any_step_leaves_the_old_model_or_the_new(tmp_path, write, dead) -> None:
    steps, outcomes = steps_of_a_save(tmp_path, write), []
    for step in range(1, steps + 1):
        target = fresh(tmp_path, write, step)
        failed = False
        with Mishap(full_disk(), step) as mishap:
            mishap.dead = dead
            try:
                write(target, 2)
            except FolderError as error:
                failed = True
                assert "No space left on device. What was there before is unchanged" in str(error)
        assert dead or target.is_dir()  # even before reading, which recovers what a kill left
        found = number_of(target)
        assert found == (1 if failed else 2), f"step {step}"
        outcomes.append(found)
        check_that_all_is_well_again(target, write)
    # A failure while the old model is cleaned away behind the new one does no harm.
    assert outcomes.count(1) > 20 and outcomes.count(2) > 10


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("dead", [False, True], ids=["interrupt", "kill"])
def test_an_interrupt_at_any_step_leaves_the_old_model_or_the_new(
    tmp_path, write, when: str, dead: bool
) -> None:
    steps, outcomes = steps_of_a_save(tmp_path, write), []
    for step in range(1, steps + 1):
        target = fresh(tmp_path, write, step)
        with Mishap(KeyboardInterrupt(), step) as mishap, pytest.raises(KeyboardInterrupt):
            mishap.when, mishap.dead = when, dead
            write(target, 2)
        outcomes.append(number_of(target))
        check_that_all_is_well_again(target, write)
    assert outcomes == sorted(outcomes) and outcomes.count(1) > 20 and outcomes.count(2) > 10


def check_that_all_is_well_again(target: Path, write: Callable[[Path, int], None]) -> None:
    """The next save works, keeps the files of others, and leaves nothing beside the folder."""
    assert (target / "mine.txt").read_text() == "mine"
    write(target, 3)
    assert number_of(target) == 3
    assert (
        (target / "mine.txt").read_text() == (target / "plots" / "mine.svg").read_text() == "mine"
    )
    assert [each.name for each in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), full_disk()], ids=repr)
def test_a_first_save_that_fails_leaves_no_folder_or_a_whole_one(tmp_path, write, error) -> None:
    with Mishap() as watch:
        write(tmp_path / "0" / "model", 1)
    kinds = (FolderError, KeyboardInterrupt)
    for step in range(1, watch.calls + 1):
        target = tmp_path / str(step) / "model"
        with Mishap(error, step):
            try:
                write(target, 1)
            except kinds:
                assert not target.exists() or number_of(target) == 1
            else:
                assert number_of(target) == 1
        write(target, 2)
        assert number_of(target) == 2


def test_a_save_after_a_kill_between_the_renames_keeps_the_files_of_others(tmp_path, write) -> None:
    target = fresh(tmp_path, write, 0)
    target.rename(target.with_name(".model.previous"))
    write(target, 2)
    assert number_of(target) == 2 and (target / "mine.txt").read_text() == "mine"


def test_what_a_kill_left_half_written_is_never_read(tmp_path, write) -> None:
    target = fresh(tmp_path, write, 0)
    half = target.with_name(".model.saving")
    half.mkdir()
    (half / "config.json").write_text('{"format": "gen')
    assert number_of(target) == 1
    write(target, 2)
    assert number_of(target) == 2 and not half.exists()


def test_every_file_is_on_the_disk_before_it_takes_the_place_of_the_old_one(
    folder, monkeypatch
) -> None:
    model = load_model(folder)
    events = []
    flush, rename = os.fsync, os.rename

    def flushing(file: int) -> None:
        events.append(Path(f"/proc/self/fd/{file}").readlink().name)
        flush(file)

    def renaming(old: Path, new: Path) -> None:
        events.append(f"{old.name} -> {new.name}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(os, "rename", renaming)
    model.save_pretrained(folder)
    assert set(events[:4]) == FILES
    assert events[4:] == ["model -> .model.previous", ".model.saving -> model"]


def test_a_relative_path_recovers_like_any_other(tmp_path, write, monkeypatch) -> None:
    target = fresh(tmp_path, write, 0)
    target.rename(target.with_name(".model.previous"))
    monkeypatch.chdir(target.parent)
    assert number_of(Path("model")) == 1


def test_a_disk_that_fills_up_while_writing_keeps_the_old_model(folder: Path) -> None:
    model = PairClassifier.from_pretrained(folder)
    expected = model.predict_proba(PAIRS)
    before = content_of(folder)
    with torch.no_grad():
        model.mlp.output.bias.add_(1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 100, 2000, len(before["model.safetensors"]) - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(FolderError) as caught:
                model.save_pretrained(folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert f"{folder}: the model could not be written" in str(caught.value)
        assert content_of(folder) == before
        assert [each.name for each in folder.parent.iterdir()] == ["model"]
    assert np.array_equal(PairClassifier.from_pretrained(folder).predict_proba(PAIRS), expected)


def test_a_disk_that_is_read_only_keeps_the_old_model(folder: Path, monkeypatch) -> None:
    def refuses(*args, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    model = PairClassifier.from_pretrained(folder)
    before = content_of(folder)
    with monkeypatch.context() as patch:
        for name in ("mkdir", "rename", "unlink", "rmdir"):
            patch.setattr(os, name, refuses)
        with pytest.raises(FolderError, match="could not be written: Read-only file system"):
            model.save_pretrained(folder)
    assert content_of(folder) == before
    assert isinstance(load_model(folder), PairClassifier)


def test_notes_that_are_not_json_leave_the_old_model(folder: Path) -> None:
    model = PairClassifier.from_pretrained(folder)
    before = content_of(folder)
    model.notes = {"data": object()}
    with pytest.raises(TypeError, match="not JSON serializable"):
        model.save_pretrained(folder)
    assert content_of(folder) == before
    assert [each.name for each in folder.parent.iterdir()] == ["model"]


# ---------------------------------------------------------------- folders of earlier versions

GOLDEN = Path(__file__).parents[1] / "golden"


def test_the_first_encoder_folder_loads_and_gives_its_vectors() -> None:
    expected = json.loads((GOLDEN / "v1-encoder.expected.json").read_text(encoding="utf-8"))
    model = SentenceEncoder.from_pretrained(GOLDEN / "v1-encoder")
    vectors = model.encode(expected["sentences"])
    assert vectors.shape == (6, 12)
    assert np.abs(vectors - np.array(expected["vectors"])).max() <= 1e-6
    assert np.ptp(vectors, axis=0).max() > 0.1
    tokens = [list(token) for token in model.text.tokens(expected["sentences"][0])]
    assert tokens == expected["tokens"]


def test_the_first_pair_classifier_folder_loads_and_gives_its_probabilities() -> None:
    expected = json.loads((GOLDEN / "v1-pair-classifier.expected.json").read_text(encoding="utf-8"))
    model = PairClassifier.from_pretrained(GOLDEN / "v1-pair-classifier")
    pairs = [tuple(pair) for pair in expected["pairs"]]
    assert model.labels == tuple(expected["labels"])
    found = model.predict_proba(pairs)
    assert np.abs(found - np.array(expected["probabilities"])).max() <= 1e-6
    assert np.ptp(found, axis=0).max() > 0.01
    assert model.predict(pairs) == expected["predicted"]


@pytest.mark.parametrize("name", ["v1-encoder", "v1-pair-classifier"])
def test_the_first_folders_are_of_format_1_and_can_be_saved_by_this_version(name, tmp_path) -> None:
    config = json.loads((GOLDEN / name / "config.json").read_text(encoding="utf-8"))
    assert (config["format"], config["format_version"]) == ("genpool", 1)
    model = load_model(GOLDEN / name)
    model.save_pretrained(tmp_path / "again")
    again = load_model(tmp_path / "again")
    assert again.settings == model.settings and again.labels == model.labels
    for key, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[key], tensor)

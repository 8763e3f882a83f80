"""The saved folder: what is in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import tokenizers
import torch
from safetensors.torch import load_file

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.text.vocabulary import SPECIAL_WORDS
from tests.helpers.saved_folders import FILES


def test_a_saved_folder_holds_its_four_files_and_nothing_is_left_beside_it(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FILES
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


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
        "dropout_scaling": "inverted",
        "character_initialization": "torch",
        "character_padding": "both",
        "ngram_buckets": 0,
        "ngram_sizes": [3, 4, 5],
        "hidden_words": 0.0,
    }
    assert "classifier" not in config["settings"]


def test_the_weights_are_those_of_the_model_by_name(folder: Path) -> None:
    model = PairClassifier.from_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    assert set(stored) == set(model.state_dict())
    assert all(torch.equal(stored[name], weight) for name, weight in model.state_dict().items())


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
    model = TextClassifier(
        SentenceEncoder.from_settings(text, make_settings()), ["да", "no|n"]
    ).eval()
    model.save_pretrained(tmp_path / "model")
    loaded = TextClassifier.from_pretrained(tmp_path / "model")
    assert loaded.labels == ("да", "no|n")
    assert loaded.text.vocabulary.words == text.vocabulary.words
    assert loaded.text.characters.characters == text.characters.characters


def test_the_encoder_of_a_classifier_is_loaded_in_a_fresh_process(folder: Path) -> None:
    code = (
        "import sys\nfrom genpool.model import SentenceEncoder\n"
        "print(SentenceEncoder.from_pretrained(sys.argv[1]).output_dim)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) == PairClassifier.from_pretrained(folder).encoder.output_dim

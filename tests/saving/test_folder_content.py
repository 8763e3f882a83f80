"""The saved folder: what is in it, its model card, and the golden folders that load for ever.

The golden folders have ten invented words and weights of -0.8 to 0.8 with four decimals:
`torch.randint(-8000, 8001, shape, generator=seed) / 10_000`, parameter by parameter; defaults are
left out below. The `.expected.json` beside them is what the model of that day returned.

v1-encoder          seed 1; embedding word_dim=3, character_dim=2, character_maps=2; stacked-bilstm
                    hidden_dim=3, layers=2; generalized, heads=2
v1-pair-classifier  seed 103; text sentence_ends, max_length=9; embedding word_dim=3, no characters,
                    not frozen; stacked-bilstm hidden_dim=2, layers=2, shortcut="both"; generalized,
                    heads=2, hidden_dim=3; classifier hidden_dim=4
v1-encoder-int4     seed 7; text rules="parts", folding, max_length=30; embedding word_dim=5, no
                    characters, ngram_buckets=24, ngram_sizes=(3, 4); bilstm hidden_dim=3, layers=1;
                    generalized, heads=2; saved with int4_tables
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from safetensors.torch import load_file

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.config import ClassifierSettings, to_dict
from genpool.disk.folder_format import read_json
from genpool.model import load_model
from genpool.text.vocabulary import SPECIAL_WORDS
from tests.helpers.released_layers import SENTENCES, released_encoder
from tests.helpers.saved_folders import FILES
from tests.helpers.small_models import LABELS, MakeEncoder

GOLDEN = Path(__file__).parents[1] / "golden"


def test_a_saved_folder_has_four_files_and_the_config_says_what_it_is(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FILES
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    config = read_json(folder / "config.json")
    assert config["format"] == "genpool" and config["format_version"] == 1
    assert config["kind"] == "PairClassifier"
    assert config["labels"] == ["yes", "no", "perhaps"]
    assert set(config["characters"]) == set("theamandogsleepsrestsrunsrednottwo.,")
    assert config["settings"]["pooling"]["name"] == "generalized"
    assert config["settings"]["pooling"]["heads"] == 2
    assert config["notes"] == {}
    weights, stored = load_model(folder).state_dict(), load_file(folder / "model.safetensors")
    assert set(stored) == set(weights)
    assert all(torch.equal(stored[name], weight) for name, weight in weights.items())


def test_every_option_is_written_out_with_its_default(make_encoder, tmp_path: Path) -> None:
    make_encoder("last", "gru").save_pretrained(tmp_path / "model")
    config = read_json(tmp_path / "model" / "config.json")
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


def test_the_tokenizer_can_be_used_without_genpool(sentence_encoder, tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "string" / "model")  # whose parents need not exist
    sentence_encoder.save_pretrained(path)
    alone = tokenizers.Tokenizer.from_file(f"{path}/tokenizer.json")
    text = sentence_encoder.text
    encoding = alone.encode("the dog runs, zebra.")
    words = text.words("the dog runs, zebra.")
    assert encoding.ids == [text.vocabulary.id(word) for word in words]
    assert encoding.offsets == [(0, 3), (4, 7), (8, 12), (12, 13), (14, 19), (19, 20)]


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


def test_switches_of_the_released_program_are_saved_and_loaded(
    make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    encoder = released_encoder(make_encoder)
    classifier = ClassifierSettings(5, 0.5, "gaussian", "test")
    model = PairClassifier(encoder, LABELS, classifier)
    model.save_pretrained(tmp_path / "model")
    saved = read_json(tmp_path / "model" / "config.json")
    assert saved["settings"] == to_dict(model.settings)
    assert saved["settings"]["text"]["lower_case_fallback"] is False
    assert saved["settings"]["embedding"]["character_padding"] == "right"
    loaded = PairClassifier.from_pretrained(tmp_path / "model")
    assert loaded.settings == model.settings
    assert loaded.text.vocabulary.lower_case_fallback is False
    assert np.array_equal(loaded.encoder.encode(SENTENCES), encoder.encode(SENTENCES))
    pairs = [("the man sleeps", "two Dogs"), ("DOG", "dog")]
    assert np.array_equal(loaded.predict_proba(pairs), model.predict_proba(pairs))


#: audit hooks cannot be removed; this one counts only while a list is in it
_listening: list[Counter[str]] = []


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _listening:
        _listening[-1][Path(str(arguments[0])).name] += 1


sys.addaudithook(_count)


@pytest.mark.parametrize("mmap", [False, True])
def test_every_file_is_opened_once(folder: Path, mmap: bool) -> None:
    SentenceEncoder.from_pretrained(folder, mmap=mmap)  # imports what is imported when needed
    opened: Counter[str] = Counter()
    _listening.append(opened)
    try:
        SentenceEncoder.from_pretrained(folder, mmap=mmap)
    finally:
        _listening.pop()
    assert {opened[name] for name in FILES - {"README.md"}} == {1}


def test_a_card_says_what_the_model_is_and_how_it_was_made(
    sentence_encoder, pair_classifier, tmp_path: Path
) -> None:
    pages = []
    pair_classifier.notes = {"title": "My model", "command": "cat | wc\n-l", "{x}": "{y} %s"}
    for model in (sentence_encoder, pair_classifier):
        model.save_pretrained(tmp_path / "model")
        pages.append((tmp_path / "model" / "README.md").read_text(encoding="utf-8"))
        count = sum(weight.numel() for weight in model.parameters())
        assert (
            f"{count:,} parameters, 64 of them in the word table. Vocabulary: 16 words" in pages[-1]
        )
    assert re.match(r"---\nlibrary_name: genpool\ntags: \[.*\]\n---\n# ", pages[0])
    assert "# SentenceEncoder: stacked-bilstm, generalized pooling\n" in pages[0]
    assert "| pooling | name = generalized, heads = 2, " in pages[0]
    assert "Labels" not in pages[0] and "How it was made" not in pages[0]
    assert "# My model\n" in pages[1]
    assert "Labels: entailment, neutral, contradiction." in pages[1]
    rows = [line for line in pages[1].split("## Inside")[0].splitlines() if line.startswith("|")]
    assert rows[2:] == [r"| command | cat \| wc -l |", "| {x} | {y} %s |"]


@pytest.mark.parametrize("kind", ["sentence_encoder", "text_classifier", "pair_classifier"])
def test_the_program_on_the_card_runs(request, tmp_path: Path, capsys, kind: str) -> None:
    model = request.getfixturevalue(kind)
    model.save_pretrained(tmp_path / "model")
    page = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert f"from genpool import {type(model).__name__}" in program
    exec(program.replace("path/to/this/folder", str(tmp_path / "model")), {})
    printed = capsys.readouterr().out
    assert "tensor" in printed if kind == "sentence_encoder" else eval(printed)[0] in model.labels


@pytest.mark.parametrize(
    ("name", "precision"), [("v1-encoder", "float"), ("v1-encoder-int4", "int4-tables")]
)
def test_the_first_encoder_folders_load_and_return_their_vectors(name, precision) -> None:
    expected = read_json(GOLDEN / f"{name}.expected.json")
    assert read_json(GOLDEN / name / "config.json")["precision"] == precision
    model, sentences = SentenceEncoder.from_pretrained(GOLDEN / name), expected["sentences"]
    vectors = model.encode(sentences)
    assert vectors.shape == (len(sentences), 12)
    assert np.abs(vectors - np.array(expected["vectors"])).max() <= 1e-6
    tokens = [[list(token) for token in model.text.tokens(sentence)] for sentence in sentences]
    if precision == "float":
        assert np.ptp(vectors, axis=0).max() > 0.1
        assert tokens[0] == expected["tokens"]
        return
    assert np.ptp(vectors, axis=0).max() > 0.05
    assert np.array_equal(vectors[-1], vectors[-2])  # the same words, written in other ways
    assert np.abs(vectors[-1] - vectors[2]).max() > 1e-3
    assert tokens == expected["tokens"]


def test_the_first_pair_classifier_folder_loads_and_returns_its_probabilities() -> None:
    expected = read_json(GOLDEN / "v1-pair-classifier.expected.json")
    model = PairClassifier.from_pretrained(GOLDEN / "v1-pair-classifier")
    pairs = [tuple(pair) for pair in expected["pairs"]]
    assert model.labels == tuple(expected["labels"])
    probabilities = model.predict_proba(pairs)
    assert np.abs(probabilities - np.array(expected["probabilities"])).max() <= 1e-6
    assert np.ptp(probabilities, axis=0).max() > 0.01
    assert model.predict(pairs) == expected["predicted"]


@pytest.mark.slow
def test_a_classifiers_folder_loads_as_an_encoder_where_only_the_search_was_imported() -> None:
    folder = GOLDEN / "v1-pair-classifier"
    code = f"""
import genpool.search
from genpool.model.sentence_encoder import SentenceEncoder
print(SentenceEncoder.from_pretrained({str(folder)!r}).encode(["a wug"]).shape)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    expected = PairClassifier.from_pretrained(folder).encoder.output_dim
    assert done.stdout == f"(1, {expected})\n", done.stderr


@pytest.mark.parametrize("name", ["v1-encoder", "v1-pair-classifier"])
def test_the_first_folders_are_of_format_1_and_can_be_saved_by_this_version(name, tmp_path) -> None:
    config = read_json(GOLDEN / name / "config.json")
    assert (config["format"], config["format_version"]) == ("genpool", 1)
    model = load_model(GOLDEN / name)
    model.save_pretrained(tmp_path / "again")
    again = load_model(tmp_path / "again")
    assert again.settings == model.settings and again.labels == model.labels
    for key, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[key], tensor)

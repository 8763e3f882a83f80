"""Model folders and recipes that were damaged or made up: refused in words, or loaded rightly.

Run with `python -m benchmarks.faults.model_folders [COUNT]` (10,000 folders and 10,000 recipes).
A folder whose checksums were kept must be refused, or be the same model. One whose checksums were
removed, as a stranger can, must be refused, or be a model that encodes.
"""

from __future__ import annotations

import json
import pickle
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.faults.cases import Problem, Tally, count_argument, main, run_cases
from benchmarks.faults.mutations import NASTY, change_bytes, change_json, to_json
from genpool import PairClassifier, SentenceEncoder
from genpool.config import (
    ClassifierSettings,
    EmbeddingSettings,
    ModelSettings,
    Part,
    TextSettings,
)
from genpool.errors import GenpoolError
from genpool.model import load_model
from genpool.recipes import recipe_names, recipe_text
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.training import read_settings
from tests.helpers.small_models import LABELS, SMALL_ENCODERS, SMALL_POOLINGS, WORDS, lively

COUNT, SEED = 10_000, 0
SENTENCES = ["the man sleeps , not a red dog .", "", "zebra's", "a " * 40]
#: encoders and poolings of the folders, and whether their weights are in 8 bits
KINDS = [
    ("stacked-bilstm", "generalized", False),
    ("bilstm", "generalized", True),
    ("shortcut-stacked", "scalar", False),
    ("cnn", "max", False),
    ("gru", "inner", False),
    ("disan", "source-to-token", True),
    ("gumbel-tree", "mean", False),
]
#: parts of a tokenizer.json of a stranger
TOKENIZER_PARTS: list[tuple[str, Any]] = [
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="}),
    ("normalizer", {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""}),
    ("pre_tokenizer", {"type": "FixedLength", "length": 0}),
    ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(a|a)*c"}, "behavior": "Removed"}),
    ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}] * 5000}),
    ("post_processor", {"type": "TemplateProcessing", "single": [], "pair": []}),
    ("decoder", {"type": "Sequence", "decoders": []}),
    ("model", {"type": "Unigram", "vocab": [["a", -1e308]], "unk_id": 7}),
    ("added_tokens", [{"id": 10**9, "content": "x" * 10**5, "special": True}]),
]


class Payload:
    """What a pickle in a folder would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("was-run"),))


def make_folders(place: Path) -> list[Path]:
    """Writes the folders that are changed."""
    folders = []
    for number, (encoder, pooling, int8) in enumerate(KINDS):
        settings = ModelSettings(
            text=TextSettings(),
            embedding=EmbeddingSettings(
                word_dim=4, character_dim=3, character_widths=(1, 2), character_maps=2
            ),
            encoder=Part(encoder, SMALL_ENCODERS.get(encoder, {})),
            pooling=Part(pooling, SMALL_POOLINGS.get(pooling, {})),
            classifier=ClassifierSettings(hidden_dim=5),
        )
        text = TextPipeline(
            WordTokenizer("whitespace" if number == 3 else "penn"),
            Vocabulary.build(dict.fromkeys(WORDS, 1)),
            Characters.build(WORDS),
            max_length=30 if number % 2 else None,
        )
        encoder_model = SentenceEncoder.from_settings(text, settings)
        model: SentenceEncoder | PairClassifier = encoder_model
        if number % 2 == 0:
            model = PairClassifier(encoder_model, LABELS, settings.classifier)
        lively(model).eval().save_pretrained(place / str(number), int8=int8)
        folders.append(place / str(number))
    return folders


def vectors(folder: Path) -> Any:
    """Returns what the model of a folder makes of a few sentences."""
    model = load_model(folder)
    encoder = model if isinstance(model, SentenceEncoder) else model.encoder
    rows = encoder.encode(SENTENCES)
    if rows.shape != (len(SENTENCES), encoder.output_dim) or rows.dtype != np.float32:
        raise Problem(f"vectors of shape {rows.shape} and type {rows.dtype}")
    if not isinstance(model, SentenceEncoder):
        examples: list[Any] = [
            ("a dog", "the man") if isinstance(model, PairClassifier) else "a dog"
        ]
        model.predict(examples)
    return rows


def change_header(content: bytes, chance: random.Random) -> bytes:
    """Returns a file of weights with another header, of the right length."""
    length = struct.unpack("<Q", content[:8])[0]
    header = to_json(change_json(json.loads(content[8 : 8 + length]), chance))
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def change_values(content: bytes, chance: random.Random) -> bytes:
    """Returns a file of weights with another value."""
    value = chance.choice([float("nan"), float("inf"), 3e38, 1e-40, -1.0, 0.0])
    place = chance.randrange(len(content) - 4)
    return content[:place] + struct.pack("<f", value) + content[place + 4 :]


def change_folder(source: Path, target: Path, chance: random.Random) -> bool:
    """Writes a changed folder; returns whether it still has its checksums."""
    files = {path.name: path.read_bytes() for path in source.iterdir()}
    name = chance.choice(["config.json", "config.json", "tokenizer.json", "model.safetensors"])
    kind = chance.randrange(8)
    if kind == 0:
        del files[name]
    elif kind == 1:
        files[name] = pickle.dumps(Payload())
    elif kind == 2 and name == "tokenizer.json":
        part, value = chance.choice(TOKENIZER_PARTS)
        files[name] = to_json({**json.loads(files[name]), part: value})
    elif kind <= 4 and name == "model.safetensors":
        change = change_header if kind == 3 else change_values
        files[name] = change(files[name], chance)
    elif kind <= 5 and name != "model.safetensors":
        files[name] = to_json(change_json(json.loads(files[name]), chance))
    else:
        files[name] = change_bytes(files[name], chance)
    kept = chance.random() < 0.4
    if not kept:
        try:
            config = json.loads(files["config.json"])
            del config["checksums"]
            files["config.json"] = to_json(config)
        except (KeyError, ValueError, TypeError):
            pass
    for path in target.iterdir():
        path.unlink()
    for file_name, content in files.items():
        (target / file_name).write_bytes(content)
    return kept


def folder_case(folders: list[Path], place: Path) -> Callable[[int], str]:
    """Returns the cases of changed folders."""
    torch.set_num_threads(1)
    expected = [vectors(folder) for folder in folders]
    target = place / "changed"
    target.mkdir(exist_ok=True)

    def case(number: int) -> str:
        chance = random.Random(f"{SEED} folders {number}")
        which = chance.randrange(len(folders))
        kept = change_folder(folders[which], target, chance)
        with np.errstate(all="ignore"):
            rows = vectors(target)
        if kept and not np.array_equal(rows, expected[which]):
            raise Problem("another model was loaded, in spite of its checksums")
        return "loaded" if np.isfinite(rows).all() else "loaded, with weights that overflow"

    return case


def recipe_case(number: int) -> str:
    """A recipe with other values, or other bytes: settings, or an error in words."""
    chance = random.Random(f"{SEED} recipes {number}")
    names = [name for name in recipe_names() if not name.startswith("embedded")]
    text = recipe_text(chance.choice(names))
    overrides = []
    if chance.random() < 0.5:
        text = change_bytes(text.encode(), chance).decode("utf-8", "surrogateescape")
    else:
        names = [line.split(" = ")[0] for line in text.splitlines() if " = " in line]
        section = chance.choice(["embedding", "encoder", "pooling", "training", "text", "reader"])
        value = chance.choice([str(value).lower() for value in NASTY] + [json.dumps(NASTY[30])])
        overrides = [f"{section}.{chance.choice(names)}={value}"]
    read_settings(text, overrides)
    return "read"


def run(count: int) -> Iterator[tuple[str, Tally]]:
    """Yields what happened, for folders and for recipes."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        yield "folders", run_cases(folder_case(make_folders(place), place), count, (GenpoolError,))
    yield "recipes", run_cases(recipe_case, count, (GenpoolError,))


if __name__ == "__main__":
    main("mutated models", run(count_argument(COUNT)))

"""The command `distil`: both recipes of the embedded encoder, on a few made-up sentences."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.distillation import teachers
from tests.helpers.distillation_runs import RECIPE, WORDS, BagOfWords, sentence, write_tables
from tests.helpers.training_runs import sets

RELEASE_RECIPES = Path(__file__).parents[2] / "benchmarks" / "release" / "recipes"
#: tables of the two recipes and their columns
TABLES: dict[str, tuple[str, ...]] = dict.fromkeys(
    [f"{name}/{split}" for name in ("stsb", "sick") for split in ("train", "dev", "test")],
    ("score", "sentence1", "sentence2"),
)
TABLES |= dict.fromkeys(("snli/train", "mnli/dev_matched"), ("label", "premise", "hypothesis"))
TABLES |= dict.fromkeys(
    ("sst5/train", "trec/train", "imdb/all", "reviews-stars/train"), ("label", "text")
)
SMALL = [
    "vectors.path=words.txt",
    "embedding.word_dim=8",
    "encoder.hidden_dim=6",
    "projection.dim=5",
    "training.epochs=2",
    "training.batch_size=16",
    "training.warm_up=2",
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with small tables in place of the large ones."""
    random = np.random.default_rng(0)
    for name, columns in TABLES.items():
        path = tmp_path / "data" / f"{name}.tsv.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = ["\t".join(columns)]
        for number in range(12):
            texts = [sentence(random) for _ in columns[1:]]
            rows.append("\t".join([str(number % 5), *texts]))
        with lzma.open(path, "wt", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")
    vectors = [f"{w} " + " ".join(f"{x:.3f}" for x in random.normal(size=8)) for w in WORDS]
    (tmp_path / "words.txt").write_text("\n".join(vectors) + "\n")
    write_tables(tmp_path)
    (tmp_path / "mine.toml").write_text(RECIPE)
    monkeypatch.setattr(teachers, "open_teacher", lambda *_: BagOfWords())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_both_recipes_of_the_embedded_encoder(genpool, place):
    said = genpool("distil", "embedded", "--data", "data", *sets(SMALL)).ok()
    assert "dev_spearman: " in said.out
    assert said.out.endswith("model: runs/embedded/best\n")
    start = ["training.start=runs/embedded/best", "training.epochs=1", "training.batch_size=16"]
    recipe = str(RELEASE_RECIPES / "embedded-second.toml")
    said = genpool("distil", recipe, "--data", "data", "--quiet", *sets(start)).ok()
    assert said.err == ""
    first, second = (
        SentenceEncoder.from_pretrained(f"runs/{name}/best")
        for name in ("embedded", "embedded-second")
    )
    assert first.settings == second.settings
    assert second.encode("the dog runs").shape == (5,)


def test_a_finished_run_is_kept(genpool, place):
    command = ["distil", "mine.toml", "--data", ".", "--out", "run", "--quiet"]
    assert genpool(*command).code == 0
    weights = (place / "run" / "best" / "model.safetensors").read_bytes()
    for more in ([], ["--resume"]):
        genpool(*command, *more).refused("a run that is finished; its model is run/best")
    assert (place / "run" / "best" / "model.safetensors").read_bytes() == weights


def test_a_recipe_without_a_teacher_is_told(genpool, place):
    genpool("distil", "snli-small", "--data", "data").refused(
        "no teacher: run it with genpool train"
    )

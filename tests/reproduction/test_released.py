"""The recipe `snli-released`: the points of the released program, up to a saved model."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier
from genpool.evaluation import read_predictions
from genpool.recipes import recipe_text
from genpool.text.vocabulary import BEGIN, END, UNKNOWN
from genpool.training import RunSettings, read_settings, train
from genpool.training.preparation import Prepared, prepare
from tests.helpers.training_runs import metrics

WORD_DIM = 6
SMALL = [
    f"embedding.word_dim={WORD_DIM}",
    "embedding.character_dim=3",
    "embedding.character_maps=2",
    "encoder.hidden_dim=5",
    "pooling.heads=2",
    "pooling.hidden_dim=4",
    "classifier.hidden_dim=8",
    "training.batch_size=16",
    "training.epochs=1",
]
LABELS = ("entailment", "neutral", "contradiction")
WORDS = ("A", "man", "Man", "dog", "sleeps", "runs", ".", "old")
#: words of the longest training pairs; with begin and end 99, 100 and 101 tokens
LONG = (97, 98, 99)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance, short = tmp_path_factory.mktemp("snli_1.0"), random.Random(0), "dog ."

    def pairs(count: int) -> list[tuple[str, str]]:
        lengths = [(chance.randint(1, 12), chance.randint(1, 12)) for _ in range(count)]
        return [(text(first), text(second)) for first, second in lengths]

    def text(words: int) -> str:
        return " ".join(chance.choices(WORDS, k=words))

    texts = [" ".join(["old"] * count) for count in LONG]
    long = [pair for text in texts for pair in ((short, text), (text, short))]
    splits = {"train": [*long, *pairs(110)], "dev": pairs(12), "test": [*long, *pairs(6)]}
    for name, rows in splits.items():
        labels = [LABELS[number % 3] for number in range(len(rows))]
        if name == "train":
            labels, rows = [*labels, "-"], [*rows, (short, short)]
        with (folder / f"snli_1.0_{name}.jsonl").open("w") as file:
            for number, (label, sides) in enumerate(zip(labels, rows, strict=True)):
                row = {"gold_label": label, "pairID": f"{number}.jpg#0"}
                for side, sentence in enumerate(sides, 1):
                    row[f"sentence{side}"] = sentence
                    row[f"sentence{side}_binary_parse"] = f"( {sentence} )"
                file.write(json.dumps(row) + "\n")
    return folder


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of lower-case words alone."""
    path = tmp_path_factory.mktemp("vectors") / "glove.txt"
    words = {"a": 1.0, "man": 2.0, "dog": 3.0, ".": 4.0}
    path.write_text("".join(f"{w} {' '.join([str(v)] * WORD_DIM)}\n" for w, v in words.items()))
    return path


@pytest.fixture(scope="module")
def settings(vectors: Path) -> RunSettings:
    return read_settings(recipe_text("snli-released"), [*SMALL, f"vectors.path={vectors}"])


@pytest.fixture(scope="module")
def prepared(settings: RunSettings, data: Path) -> Prepared:
    return prepare(settings, data)


def test_sentences_have_ends_and_pairs_of_100_tokens_are_dropped(
    prepared: Prepared,
) -> None:
    # Two pairs for each length: of 97, 98 and 99 words only those of 97 stay.
    assert prepared.notes["long training rows"].startswith("4 left out (100 tokens or more")
    assert len(prepared.train) == 2 + 110
    assert prepared.train.lengths.max() == 97 + 2
    assert prepared.tests["test"].lengths.max() == 99 + 2  # nothing is dropped at evaluation
    ids = prepared.train.batch([3, 4], prepared.table).ids
    for row in ids:
        words = row[row != 0].tolist()
        assert (words[0], words[-1]) == (BEGIN, END)
        assert not {BEGIN, END} & set(words[1:-1])


def test_words_are_looked_up_as_they_are_written(prepared: Prepared) -> None:
    vocabulary = prepared.model.text.vocabulary
    table = prepared.model.encoder.embedding.words.detach().numpy()
    assert (table[vocabulary.id("man")] == 2).all()
    assert (table[vocabulary.id("dog")] == 3).all()
    for word in ("A", "Man"):  # their lower-case forms have vectors
        row = table[vocabulary.id(word)]
        assert 0 < np.abs(row).max() < 0.06
    assert not prepared.model.encoder.embedding.words.requires_grad
    # "DOG" is not in the training text; "dog" is.
    assert vocabulary.id("dog") != UNKNOWN
    assert vocabulary.id("DOG") == UNKNOWN
    assert prepared.notes["coverage"].startswith("vectors for 3 of 8 words")


#: what each does is tested with its part
SWITCHES = """
data.drop_length=100 data.drop_counts_ends=true text.sentence_ends=true
text.lower_case_fallback=false vectors.lower_case_fallback=false
embedding.character_initialization=gaussian embedding.character_padding=right
embedding.dropout=0.5 embedding.dropout_scaling=test encoder.shortcut=both
classifier.initialization=gaussian classifier.dropout=0.5 classifier.dropout_scaling=test
penalty.name=parameter penalty.weight=0.01 penalty.threshold=1.0 penalty.average=batch
training.buffer_batches=20 training.sort_by=second training.shuffle=batches
training.schedule=restore-halve
"""


def test_every_switch_of_the_released_program_is_set_and_saved_with_a_model(
    settings: RunSettings, vectors: Path, data: Path, tmp_path: Path
) -> None:
    switches = [f"vectors.path={vectors}", *SWITCHES.split()]
    assert read_settings(recipe_text("snli-released"), [*SMALL, *switches]) == settings
    train(settings, data, tmp_path / "run", show_progress=False)
    assert metrics(tmp_path / "run")[-1]["penalty_active"] == 1
    model = PairClassifier.from_pretrained(tmp_path / "run" / "best")
    assert model.settings.text == settings.text
    assert model.settings.embedding == settings.embedding
    assert model.settings.classifier == settings.classifier
    predictions = read_predictions(tmp_path / "run" / "predictions" / "dev.tsv")
    rows = [json.loads(line) for line in (data / "snli_1.0_dev.jsonl").read_text().splitlines()]
    texts = [(row["sentence1"], row["sentence2"]) for row in rows]
    for found, expected in zip(predictions.probabilities, model.predict_proba(texts), strict=True):
        assert found == pytest.approx(expected, abs=1e-6)

"""The recipe `snli-released`: every point of the released program is in effect, not only set."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from genpool import PairClassifier
from genpool.evaluation import read_predictions
from genpool.pooling import GeneralizedPooling
from genpool.pooling.base import Pooled
from genpool.recipes import recipe_text
from genpool.text.vocabulary import BEGIN, END, UNKNOWN
from genpool.training import RunSettings, loop, read_settings, report, train
from genpool.training.heads import head_penalties
from genpool.training.preparation import Prepared, prepare
from tests.helpers.training_runs import metrics

BATCH_SIZE, BUFFER_BATCHES = 2, 20
WORD_DIM, HIDDEN = 6, 5
SMALL = [
    f"embedding.word_dim={WORD_DIM}",
    "embedding.character_dim=3",
    "embedding.character_maps=2",
    f"encoder.hidden_dim={HIDDEN}",
    "pooling.heads=2",
    "pooling.hidden_dim=4",
    "classifier.hidden_dim=64",
    f"training.batch_size={BATCH_SIZE}",
    "training.epochs=1",
]
LABELS = ("entailment", "neutral", "contradiction")
WORDS = ("A", "man", "Man", "dog", "sleeps", "runs", ".", "old")
#: words of the longest training pairs; with begin and end 99, 100 and 101 tokens
LONG = (97, 98, 99)


def pair(label: str, first: list[str], second: list[str], number: int) -> dict[str, str]:
    """A line of the official file."""
    parses = [f"( {' '.join(words)} )" for words in (first, second)]
    sentences = [" ".join(words) for words in (first, second)]
    return {
        "gold_label": label,
        "pairID": f"{number}.jpg#0",
        **{f"sentence{side}": text for side, text in enumerate(sentences, 1)},
        **{f"sentence{side}_binary_parse": text for side, text in enumerate(parses, 1)},
    }


def pairs(count: int, seed: int) -> list[dict[str, str]]:
    chance = random.Random(seed)

    def words() -> list[str]:
        return [chance.choice(WORDS) for _ in range(chance.randint(1, 12))]

    return [pair(LABELS[number % 3], words(), words(), number) for number in range(count)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of official SNLI files."""
    folder = tmp_path_factory.mktemp("snli_1.0")
    short = ["dog", "."]
    long = [
        pair("neutral", *sides, 900 + number)
        for number, count in enumerate(LONG)
        for sides in ((short, ["old"] * count), (["old"] * count, short))
    ]
    splits = {"train": [*long, *pairs(110, 0), pair("-", short, short, 99)], "dev": pairs(12, 1)}
    splits["test"] = [*long, *pairs(6, 2)]
    for name, rows in splits.items():
        path = folder / f"snli_1.0_{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
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


@pytest.fixture(scope="module")
def trained(
    settings: RunSettings, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[list[int]]]:
    """The folder of a run, and the rows of its batches in the order of training."""
    out = tmp_path_factory.mktemp("runs") / "released"
    batches: list[list[int]] = []
    original = vars(loop)["epoch_batches"]

    def record(*arguments: Any) -> Any:
        epoch = original(*arguments)
        batches.extend(batch.tolist() for batch in epoch)
        return epoch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "epoch_batches", record)
        patch.setattr(report, "learning_curve_picture", lambda *arguments: None)
        train(settings, data, out, show_progress=False)
    return out, batches


def test_pairs_of_100_tokens_are_dropped_with_begin_and_end_counted(prepared: Prepared) -> None:
    # Two pairs for each length: of 97, 98 and 99 words only those of 97 stay.
    assert prepared.notes["long training rows"].startswith("4 left out (100 tokens or more")
    assert len(prepared.train) == 2 + 110
    assert prepared.train.lengths.max() == 97 + 2
    assert prepared.tests["test"].lengths.max() == 99 + 2  # nothing is dropped at evaluation


def test_every_sentence_has_its_ends(prepared: Prepared) -> None:
    ids = prepared.train.batch([3, 4], prepared.table).ids
    for row in ids:
        words = row[row != 0].tolist()
        assert (words[0], words[-1]) == (BEGIN, END)
        assert not {BEGIN, END} & set(words[1:-1])


def test_batches_follow_the_buffers_of_the_file_by_the_length_of_the_hypothesis(
    prepared: Prepared, trained: tuple[Path, list[list[int]]]
) -> None:
    _, batches = trained
    hypotheses = [int(length) for length in prepared.train.lengths[:, 1]]
    size = BATCH_SIZE * BUFFER_BATCHES
    taken = 0
    for start in range(0, len(hypotheses), size):
        rows = list(range(start, min(start + size, len(hypotheses))))
        order = np.array(rows)[np.argsort([hypotheses[row] for row in rows], kind="stable")]
        expected = [order[at : at + 2].tolist() for at in range(0, len(order), BATCH_SIZE)]
        buffer = batches[taken : taken + len(expected)]
        taken += len(expected)
        assert sorted(buffer) == sorted(expected)
        assert buffer != expected  # the batches of a buffer are shuffled
    assert taken == len(batches)


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


def test_the_mlp_starts_gaussian_with_zero_biases(prepared: Prepared) -> None:
    mlp = prepared.model.mlp
    for layer in (mlp.first, mlp.second):
        weight = layer.weight.detach().numpy()
        assert weight.std() == pytest.approx(0.01, rel=0.05)
        assert np.abs(weight).max() > 0.025  # a uniform start of this deviation ends at 0.0173
        assert not layer.bias.detach().numpy().any()
    assert not mlp.output.bias.detach().numpy().any()


def test_character_filters_start_gaussian_and_read_to_the_right(prepared: Prepared) -> None:
    spelling = prepared.model.encoder.embedding.spelling
    assert spelling is not None
    filters = [weights.detach().numpy() for weights in spelling.filters]
    assert np.concatenate([values.ravel() for values in filters]).std() == pytest.approx(
        0.01, rel=0.3
    )
    letters = spelling.letters.detach().numpy()
    word = prepared.model.text.characters.ids_of("sleeps")
    expected = []
    for weights in filters:
        maps, dim, width = weights.shape
        padded = np.concatenate([letters[word], np.zeros((width - 1, dim))])
        for feature in range(maps):
            values = [
                sum(weights[feature, :, at] @ padded[start + at] for at in range(width))
                for start in range(len(word))
            ]
            expected.append(max(0.0, *values))
    found = spelling(torch.tensor(word), torch.tensor([len(word)]))
    assert found.detach().numpy()[0] == pytest.approx(np.array(expected), abs=1e-9)


@pytest.mark.parametrize("room", ["embedding", "classifier"])
def test_dropout_does_not_rescale_in_training_and_halves_at_test(
    prepared: Prepared, room: str
) -> None:
    model = prepared.model
    dropout = model.encoder.embedding.dropout if room == "embedding" else model.mlp.dropout
    ones = torch.ones(200, 50)
    try:
        kept = dropout.train()(ones)
        assert set(kept.unique().tolist()) == {0.0, 1.0}
        assert float(kept.mean()) == pytest.approx(0.5, abs=0.03)
        assert (dropout.eval()(ones) == 0.5).all()
    finally:
        dropout.train()


def test_layers_two_and_three_read_both_directions_below(prepared: Prepared) -> None:
    embedding = prepared.model.encoder.embedding.output_dim
    sizes = [
        (embedding if layer == 0 else embedding + 2 * HIDDEN) + HIDDEN + 1 for layer in range(3)
    ]
    expected = sum(2 * 4 * HIDDEN * size for size in sizes)  # two directions, four gates
    encoder = prepared.model.encoder.encoder
    assert sum(weight.numel() for weight in encoder.parameters()) == expected


def test_the_penalty_is_a_hundredth_of_the_hinges_of_w1(
    prepared: Prepared, settings: RunSettings
) -> None:
    pooling = prepared.model.encoder.pooling
    assert isinstance(pooling, GeneralizedPooling)
    w1 = pooling.w1.detach().numpy().astype(np.float64)
    distance = ((w1[0] - w1[1]) ** 2).sum()
    nothing = torch.zeros(0)
    pooled = Pooled(nothing, nothing, None)
    (penalty,) = head_penalties(settings.penalty, prepared.model.encoder, pooled, 2)
    assert float(penalty.term.detach()) == pytest.approx(1e-2 * max(1 - distance, 0), rel=1e-6)


def test_the_run_ends_with_a_model_that_keeps_all_of_it(
    trained: tuple[Path, list[list[int]]], data: Path, settings: RunSettings
) -> None:
    out, _ = trained
    assert metrics(out)[-1]["penalty_active"] == 1
    model = PairClassifier.from_pretrained(out / "best")
    assert model.settings.text == settings.text
    assert model.settings.embedding == settings.embedding
    assert model.settings.classifier == settings.classifier
    predictions = read_predictions(out / "predictions" / "dev.tsv")
    rows = [json.loads(line) for line in (data / "snli_1.0_dev.jsonl").read_text().splitlines()]
    texts = [(row["sentence1"], row["sentence2"]) for row in rows]
    for found, expected in zip(predictions.probabilities, model.predict_proba(texts), strict=True):
        assert found == pytest.approx(expected, abs=1e-6)

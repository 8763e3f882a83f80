"""Starting from a model: its weights, with the words of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder, TextClassifier
from genpool.config import EmbeddingSettings, ModelSettings, Part
from genpool.errors import ConfigError, FolderError, Interrupted
from genpool.recipes import recipe_text
from genpool.text import TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS, UNKNOWN, CharacterNgrams
from genpool.training import RunSettings, read_settings, train
from genpool.training.loop import Run
from genpool.training.preparation import Prepared, prepare
from genpool.training.start_model import DataWords, start_encoder, start_settings
from tests.helpers.small_models import LABELS
from tests.helpers.training_runs import reviews, stopping, weights, write_table

SENTENCES = ["The man sleeps.", "A Red dog runs, not two.", "An unheard-of zebra", ""]
QUICK = ("classifier.hidden_dim=4", "training.epochs=2")


@pytest.fixture
def model(sentence_encoder: SentenceEncoder, tmp_path: Path) -> Path:
    """The folder of a small encoder."""
    sentence_encoder.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "table.tsv", reviews(40, 0))


def settings_of(model: Path | str, *overrides: str) -> RunSettings:
    return read_settings(recipe_text("texts"), [f"start.model={model}", *QUICK, *overrides])


def prepared_from(model: Path, table: Path, *overrides: str) -> Prepared:
    settings, start = start_settings(settings_of(model, *overrides))
    return prepare(settings, table, start)


def from_model(
    start: SentenceEncoder,
    words: Iterable[str],
    counts: Counter[str],
    minimum: int = 1,
    notes: dict[str, str] | None = None,
) -> tuple[SentenceEncoder, DataWords]:
    settings = read_settings("", ["start.model=memory", f"vocabulary.minimum_count={minimum}"])
    settings, _ = start_settings(settings, start)
    return start_encoder(start, settings, words, counts, {} if notes is None else notes)


def test_the_vectors_of_the_start_model_do_not_change_before_training(sentence_encoder):
    words = [word for text in SENTENCES for word in sentence_encoder.text.words(text)]
    encoder, data_words = from_model(sentence_encoder, words, Counter(words))
    expected = sentence_encoder.encode(SENTENCES)
    np.testing.assert_allclose(encoder.eval().encode(SENTENCES), expected, atol=1e-6)
    complete = data_words.complete(TextClassifier(encoder, LABELS)).encoder
    np.testing.assert_allclose(complete.encode(SENTENCES), expected, atol=1e-6)


def test_new_words_are_added_and_start_as_unknown_words(sentence_encoder):
    counts = Counter({"Zebra": 2, "zebra": 1, "dog": 5, "rare": 1})
    notes: dict[str, str] = {}
    encoder, data_words = from_model(sentence_encoder, [*counts, "unseen"], counts, 2, notes)
    assert encoder.text.vocabulary.words[4:] == ("dog", "zebra")
    assert data_words.text.vocabulary.words[-1] == "zebra"
    assert data_words.text.vocabulary.words[:-1] == sentence_encoder.text.vocabulary.words
    zebra = encoder.embedding.words[encoder.text.vocabulary.id("Zebra")]
    assert torch.equal(zebra, sentence_encoder.embedding.words[UNKNOWN])
    assert notes["vocabulary"].endswith("1 words added")


def test_new_characters_are_added_after_the_known_ones(sentence_encoder):
    counts = Counter({"Öl": 1})
    encoder, _ = from_model(sentence_encoder, counts, counts)
    known = sentence_encoder.text.characters.characters
    assert encoder.text.characters.characters == known + "ö"
    spelling, before = encoder.embedding.spelling, sentence_encoder.embedding.spelling
    assert spelling is not None
    assert before is not None
    assert torch.equal(spelling.letters[: len(before.letters)], before.letters)
    assert torch.equal(spelling.letters[-1], before.letters[UNKNOWN])


def test_a_saved_model_has_all_words_and_those_of_the_data_changed(
    sentence_encoder, model, table, tmp_path
):
    train(settings_of(model), table, tmp_path / "run", show_progress=False)
    trained = TextClassifier.from_pretrained(tmp_path / "run" / "best").encoder
    before = sentence_encoder.text.vocabulary
    assert trained.text.vocabulary.words[: len(before)] == before.words
    data = {word for _, text in reviews(40, 0) for word in text.split()}
    for word in before.words[4:]:
        one = sentence_encoder.embedding.words[before.ids[word]]
        same = torch.equal(one, trained.embedding.words[trained.text.vocabulary.ids[word]])
        assert same == (word not in data), word
    assert data <= set(trained.text.vocabulary.words)


def test_training_all_words_at_once_gives_the_same_model(sentence_encoder, model, table, tmp_path):
    """The step of a table with all words, computed with a plain loop of PyTorch."""
    prepared = prepared_from(model, table, "start.dropout=0.0")
    words = prepared.words
    assert words is not None
    complete = words.complete(prepared.model).requires_grad_(True)
    data, table_words = prepared.train, complete.text.table()
    for step_model, split in ((prepared.model, None), (complete, "complete")):
        step_model.train()
        step_model.mlp.dropout.p = 0.0
        optimizer = torch.optim.AdamW(step_model.parameters(), lr=0.1, weight_decay=0.0)
        rows = list(range(len(data)))
        if split is None:
            batch = data.batch(rows, prepared.table)
        else:
            texts = [" ".join(_words(prepared, row)) for row in rows]
            batch = table_words.batch([table_words.row(text.split(), False) for text in texts])
        logits = step_model(batch).logits
        torch.nn.functional.cross_entropy(logits, torch.from_numpy(data.labels)).backward()
        optimizer.step()
    again = words.complete(prepared.model)
    for name, weight in again.state_dict().items():
        torch.testing.assert_close(weight, complete.state_dict()[name], atol=1e-5, rtol=1e-4)
    assert sentence_encoder.output_dim == complete.encoder.output_dim


def _words(prepared: Prepared, row: int) -> list[str]:
    names = {index: word for word, index in prepared.table._indices.items()}
    return [names[index] for index in prepared.train.sentence(row).tolist()]


@pytest.mark.parametrize(
    ("freeze", "changed"), [("nothing", {"words", "rest"}), ("words", {"rest"}), ("encoder", set())]
)
def test_what_is_frozen_does_not_change(sentence_encoder, model, table, tmp_path, freeze, changed):
    train(settings_of(model, f"start.freeze={freeze}"), table, tmp_path / "run", False, False)
    trained = TextClassifier.from_pretrained(tmp_path / "run" / "best").encoder.state_dict()
    differ = set()
    for name, before in sentence_encoder.state_dict().items():
        after = trained[name][: len(before)]
        if not torch.equal(before, after):
            differ.add("words" if name == "embedding.words" else "rest")
    assert differ == changed


def test_the_encoder_of_a_classifier_gets_a_new_classifier(pair_classifier, table, tmp_path):
    pair_classifier.save_pretrained(tmp_path / "pairs")
    prepared = prepared_from(tmp_path / "pairs", table)
    assert type(prepared.model) is TextClassifier
    assert prepared.model.labels == ("bad", "good")
    before = pair_classifier.encoder.pooling.state_dict()
    for name, weight in prepared.model.encoder.pooling.state_dict().items():
        assert torch.equal(weight, before[name])


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("encoder.name=gru", "encoder is set, but the run starts from the model"),
        ("pooling.name=max", "pooling is set"),
        ("embedding.word_dim=7", "embedding is set"),
        ("text.sentence_ends=true", "has its own tokenizer"),
        ("vectors.path=glove.txt", "vectors.path is set, but the run starts from the model"),
    ],
)
def test_a_setting_that_contradicts_the_model_is_refused(model, override, problem):
    with pytest.raises(ConfigError, match=problem):
        start_settings(settings_of(model, override))


def test_the_maximum_length_can_be_changed_and_no_model_is_refused(model, table, tmp_path):
    prepared = prepared_from(model, table, "text.max_length=3")
    assert prepared.train.lengths.max() == 3
    assert prepared.complete_model().text.max_length == 3
    with pytest.raises(FolderError, match="no-such-model"):
        train(settings_of(tmp_path / "no-such-model"), table, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_from_a_model_continues_after_a_stop_to_the_same_weights(model, table, tmp_path):
    settings = settings_of(model, "training.save_minutes=0")
    train(settings, table, tmp_path / "whole", show_progress=False)
    with stopping(Run, "step", 4, KeyboardInterrupt), pytest.raises(Interrupted):
        train(settings, table, tmp_path / "parts", show_progress=False)
    train(settings, table, tmp_path / "parts", resume=True, show_progress=False)
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")


# --- Training from a model with n-grams: a new word starts where its n-grams put it ---------------


def test_a_new_word_starts_with_the_vector_of_its_ngrams():
    text = TextPipeline(
        WordTokenizer("parts", folding=True),
        Vocabulary([*SPECIAL_WORDS, "dog", "runs"], folding=True),
        CharacterNgrams(60, (3, 4)),
    )
    settings = ModelSettings(
        embedding=EmbeddingSettings(
            word_dim=5, characters=False, ngram_buckets=60, ngram_sizes=(3, 4), dropout=0.0
        ),
        encoder=Part("bilstm", {"hidden_dim": 4, "layers": 1}),
        pooling=Part("mean"),
    )
    torch.manual_seed(0)
    start = SentenceEncoder.from_settings(text, settings).eval()
    for parameter in start.parameters():
        torch.nn.init.normal_(parameter)
    counts = Counter({"Wúg": 3, "dog": 2, "WUG": 1, "once": 1})
    encoder, _ = from_model(start, counts, counts, 2)
    words = encoder.text.vocabulary.words
    assert words[4:] == ("dog", "wug")  # one entry for all its forms; "once" is too rare
    assert encoder.text.vocabulary.folding
    sentences = ["the dog wug", "WÜG once"]
    assert np.abs(encoder.eval().encode(sentences) - start.encode(sentences)).max() < 1e-6
    unknown = encoder.embedding.words[encoder.text.vocabulary.id("wug")]
    ids = torch.tensor(start.text.characters.ids_of("wug"))
    assert start.embedding.backing is not None
    expected = start.embedding.backing["table"][ids].sum(dim=0) / len(ids) ** 0.5
    assert torch.allclose(unknown, expected, atol=1e-6)

"""What a recipe may say, and how all of its mistakes are reported at once."""

from __future__ import annotations

import pytest
import torch

from genpool.config import Part
from genpool.errors import ConfigError
from genpool.pooling import POOLINGS
from genpool.training import RunSettings, read_settings
from genpool.training.run_folder import settings_toml
from tests.helpers.training_runs import RECIPE


def problems(text: str, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read_settings(text, overrides)
    return error.value.problems


def test_all_mistakes_of_a_recipe_are_reported_together():
    text = """
    plugins = ["genpool.reproduction"]
    [reader]
    name = "rules"
    sizes = "many"
    sead = 3
    bad_rows = "ignore"
    [embedding]
    word_dim = 0
    dropout = 1.0
    frozen = "yes"
    [encoder]
    name = "stacked-bilsm"
    [pooling]
    name = "generalized"
    haeds = 3
    [training]
    epoch = 3
    batch_size = 2.5
    schedule = "constnt"
    """
    reported = problems(text, "classifier.hidden_dim=-1", "nonsense")
    expected = [
        ("'nonsense' is not an override", "section.key=value"),
        ("unknown option of reader 'rules' 'sead'", "Did you mean 'seed'?"),
        ("reader.sizes is 'many'", "expected a list in which every value is a whole number"),
        ("unknown reader.bad_rows 'ignore'", "Known: error, skip"),
        ("embedding.word_dim is 0", "expected 1 or more"),
        ("embedding.dropout is 1.0", "expected a number below 1.0"),
        ("embedding.frozen is 'yes'", "expected true or false"),
        ("unknown encoder 'stacked-bilsm'", "Did you mean 'stacked-bilstm'?"),
        ("unknown option of pooling 'generalized' 'haeds'", "Did you mean 'heads'?"),
        ("unknown setting 'training.epoch'", "Did you mean 'training.epochs'?"),
        ("training.batch_size is 2.5", "expected a whole number"),
        ("unknown training.schedule 'constnt'", "Did you mean 'constant'?"),
        ("classifier.hidden_dim is -1", "expected 1 or more"),
    ]
    assert len(reported) == len(expected)
    for mistake, remedy in expected:
        assert any(mistake in text and remedy in text for text in reported), (mistake, reported)


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("training.epochs=3", "training", "epochs", 3),
        ("training.learning_rate = 2e-3", "training", "learning_rate", 2e-3),
        ("training.tensorboard=true", "training", "tensorboard", True),
        ("embedding.character_widths=[2, 4]", "embedding", "character_widths", (2, 4)),
        ('vectors.path="glove.txt"', "vectors", "path", "glove.txt"),
        ("vectors.path=data/glove 840B.txt", "vectors", "path", "data/glove 840B.txt"),
        ("vectors.path=a=b.txt", "vectors", "path", "a=b.txt"),
        ("data.test=['a', 'b']", "data", "test", ("a", "b")),
        ("penalty.name=attention", "penalty", "name", "attention"),
    ],
)
def test_an_override_is_a_toml_value_or_else_plain_text(override, section, key, value):
    changed = getattr(read_settings(RECIPE, [override]), section)
    assert getattr(changed, key) == value
    assert type(getattr(changed, key)) is type(value)


def test_a_later_override_wins_and_reaches_the_options_of_a_part():
    changed = read_settings(RECIPE, ["training.epochs=5", "training.epochs=7"])
    assert changed.training.epochs == 7
    assert changed.training.batch_size == read_settings(RECIPE).training.batch_size
    changed = read_settings(RECIPE, ["pooling.heads=4", "reader.first=body"])
    assert changed.pooling == Part("generalized", {"heads": 4, "hidden_dim": 4})
    assert changed.reader == Part("table", {"first": "body"})
    changed = read_settings('pooling = "scalar"', ["pooling.heads=3"])
    assert changed.pooling == Part("scalar", {"heads": 3})


def test_another_name_leaves_behind_the_options_that_it_does_not_have():
    text = '[pooling]\nname = "generalized"\nheads = 4\nhidden_dim = 6\nstart = "mean"\n'
    assert read_settings(text, ["pooling.name=max"]).pooling == Part("max")
    scalar = read_settings(text, ["pooling.heads=2", "pooling.name=scalar"]).pooling
    assert scalar == Part("scalar", {"heads": 2, "hidden_dim": 6})
    assert read_settings(text, ["pooling.name=generalized"]) == read_settings(text)


@pytest.mark.parametrize("bad", ["epochs=3", "training.epochs", "a.b.c=1", "=3", ".epochs=3", ""])
def test_what_is_not_an_override_is_refused(bad):
    assert problems(RECIPE, bad) == [f"{bad!r} is not an override; expected section.key=value."]


def test_a_text_that_is_not_toml_is_refused_with_its_place():
    with pytest.raises(ConfigError, match=r"mine\.toml: this is not TOML.*line 2"):
        read_settings("[training]\nepochs = = 3\n", source="mine.toml")


@pytest.mark.parametrize("penalty", ["parameter", "attention", "embedding", "scalar"])
def test_the_poolings_themselves_say_which_penalties_they_take(penalty):
    able = {name for name, cls in POOLINGS.items() if penalty in cls.penalties}
    for pooling in POOLINGS:
        overrides = [f"penalty.name={penalty}", f"pooling.name={pooling}"]
        if pooling in able:
            assert read_settings("", overrides).pooling.name == pooling
        else:
            (problem,) = problems("", *overrides)
            named = problem.split("which needs ")[1].split(" pooling, not")[0].split(" or ")
            assert set(named) == able


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("vocabulary.vector_words=true", "", "vectors.path names no vector file"),
        ("data.drop_counts_ends=true", "", "text.sentence_ends is false"),
        (
            "text.lower_case_fallback=false",
            "vocabulary.lower_case=true",
            "every word with a capital letter would be unknown",
        ),
        ("encoder.name=disan", "pooling.name=gated", "needs the input gates of an LSTM"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(first, second, expected):
    (problem,) = problems(RECIPE, *filter(None, (first, second)))
    assert expected in problem


def test_settings_written_as_toml_read_back_equal():
    settings = read_settings(
        RECIPE,
        ["data.dev_share=0.1", "reader.labels=['a','b']", "text.max_length=9", "data.test=['t']"],
    )
    assert read_settings(settings_toml(settings)) == settings
    assert read_settings(settings_toml(RunSettings())) == RunSettings() == read_settings("")


# --- Values that no setting can have -------------------------------------------------------------
DEEP = 5000


@pytest.mark.parametrize(
    "value", ["[" * DEEP + "]" * DEEP, "{" + "a." * DEEP + "a = 1}"], ids=["lists", "a dotted key"]
)
def test_a_value_that_is_nested_too_deeply_is_refused_in_words(value):
    assert problems(RECIPE, f"reader.labels={value}", "training.epochs=0") == [
        "reader.labels is nested too deeply; expected a value, or a list of values.",
        "training.epochs is 0; expected 1 or more.",
    ]
    (problem,) = problems(f"[training]\nseed = {value}\n")
    assert "is nested too deeply" in problem
    assert "pooling is [[[" in problems(f"pooling = {'[' * 300}{']' * 300}")[0]


@pytest.mark.parametrize("name", ["training.seed", "reader.seed", "embedding.word_dim"])
def test_an_integer_of_more_than_64_bits_is_refused_in_words(name):
    rules = "plugins = ['genpool.reproduction']\n[reader]\nname = 'rules'\n"
    unprintable = f"0x{'f' * DEEP}"  # of more digits than Python prints
    for large, shown in ((2**63, 2**63), (10**30, 10**30), (unprintable, "too large")):
        expected = f"{name} is {shown}; expected a whole number of 64 bits (below 2**63)."
        assert problems(rules, f"{name}={large}") == [expected]
    largest = 2**63 - 1
    assert read_settings(RECIPE, [f"training.seed={largest}"]).training.seed == largest
    torch.manual_seed(largest)


def test_an_integer_of_thousands_of_digits_is_refused_in_words():
    (problem,) = problems(RECIPE, f"training.seed=1{'0' * DEEP}")
    assert problem.startswith("training.seed is '1000")
    assert problem.endswith("expected a whole number.")
    (problem,) = problems(f"[training]\nseed = 1{'0' * DEEP}\n")
    assert problem.startswith("this is not TOML")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("embedding.word_dim=1000000000000000", "parameters, most of them in encoder"),
        ("pooling.hidden_dim=1000000000000", "parameters, most of them in pooling"),
        ("projection.dim=100000000000", "parameters, most of them in classifier"),
        (f"encoder.hidden_dim={2**62}", "would be too large"),  # for any tensor
        (f"pooling.heads={2**62}", "would be too large"),
        (f"projection.dim={2**62}", "would be too large"),
    ],
)
def test_a_model_that_no_machine_can_hold_is_refused_with_where_it_is_large(setting, problem):
    (told,) = problems(RECIPE, setting)
    assert problem in told
    if "parameters" in problem:
        assert "the model would have" in told
        assert told.endswith("expected at most 100,000,000,000.")

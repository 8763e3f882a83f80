"""What a recipe may say, and how all its mistakes are told at once."""

from __future__ import annotations

import pytest

from genpool.config import Part
from genpool.errors import ConfigError
from genpool.training import RunSettings, read_settings
from genpool.training.run_folder import settings_toml

from .small import RECIPE


def problems(text: str, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read_settings(text, overrides)
    return error.value.problems


def test_an_empty_recipe_gives_the_defaults() -> None:
    assert read_settings("") == RunSettings()


def test_all_mistakes_of_a_recipe_are_told_together() -> None:
    text = """
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
    found = problems(text, "classifier.hidden_dim=-1", "nonsense")
    expected = [
        ("'nonsense' is not an override", "section.key=value"),
        ("unknown option of reader 'rules' 'sead'", "Did you mean 'seed'?"),
        ("reader.sizes is 'many'", "expected a list, each a whole number"),
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
    assert len(found) == len(expected)
    for given, remedy in expected:
        assert any(given in each and remedy in each for each in found), (given, found)


def test_the_message_names_the_recipe_and_lists_every_mistake() -> None:
    text = "[training]\nepochs = 0\nclip = -1.0\n"
    with pytest.raises(ConfigError, match=r"mine\.toml: 2 settings are wrong") as error:
        read_settings(text, source="mine.toml")
    assert str(error.value).count("\n  - ") == 2


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
def test_an_override_is_a_toml_value_or_else_plain_text(
    override: str, section: str, key: str, value: object
) -> None:
    changed = getattr(read_settings(RECIPE, [override]), section)
    assert getattr(changed, key) == value
    assert type(getattr(changed, key)) is type(value)


def test_an_override_wins_over_the_recipe_and_a_later_one_over_an_earlier_one() -> None:
    found = read_settings(RECIPE, ["training.epochs=5", "training.epochs=7"])
    assert found.training.epochs == 7
    assert found.training.batch_size == read_settings(RECIPE).training.batch_size


def test_an_override_reaches_the_options_of_a_part() -> None:
    found = read_settings(RECIPE, ["pooling.heads=4", "reader.first=body"])
    assert found.pooling == Part("generalized", {"heads": 4, "hidden_dim": 4})
    assert found.reader == Part("table", {"first": "body"})


def test_a_part_that_is_given_by_its_name_alone_takes_overrides_too() -> None:
    found = read_settings('pooling = "scalar"', ["pooling.heads=3"])
    assert found.pooling == Part("scalar", {"heads": 3})


def test_another_name_leaves_behind_the_options_that_it_does_not_have() -> None:
    text = '[pooling]\nname = "generalized"\nheads = 4\nhidden_dim = 6\ninitial_std = 0.1\n'
    assert read_settings(text, ["pooling.name=max"]).pooling == Part("max")
    scalar = read_settings(text, ["pooling.heads=2", "pooling.name=scalar"]).pooling
    assert scalar == Part("scalar", {"heads": 2, "hidden_dim": 6})
    assert read_settings(text, ["pooling.name=generalized"]) == read_settings(text)


def test_options_given_for_another_name_are_checked() -> None:
    (found,) = problems('pooling = "generalized"', "pooling.heads=2", "pooling.name=max")
    assert "unknown option of pooling 'max' 'heads'" in found


@pytest.mark.parametrize("bad", ["epochs=3", "training.epochs", "a.b.c=1", "=3", ".epochs=3", ""])
def test_what_is_not_an_override_is_told(bad: str) -> None:
    assert problems(RECIPE, bad) == [f"{bad!r} is not an override; expected section.key=value."]


def test_a_text_that_is_not_toml_is_told_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"mine\.toml: this is not TOML.*line 2"):
        read_settings("[training]\nepochs = = 3\n", source="mine.toml")


@pytest.mark.parametrize(
    ("penalty", "pooling"),
    [
        ("parameter", "scalar"),
        ("parameter", "max"),
        ("attention", "mean"),
        ("embedding", "last"),
        ("scalar", "generalized"),
    ],
)
def test_a_penalty_needs_a_pooling_that_has_what_it_keeps_apart(penalty: str, pooling: str) -> None:
    (found,) = problems("", f"penalty.name={penalty}", f"pooling.name={pooling}")
    assert f"penalty.name is {penalty!r}" in found
    assert found.endswith(f"not {pooling}.")


@pytest.mark.parametrize(
    ("penalty", "pooling"),
    [
        ("none", "max"),
        ("parameter", "generalized"),
        ("attention", "generalized"),
        ("attention", "scalar"),
        ("embedding", "generalized"),
        ("scalar", "scalar"),
    ],
)
def test_a_penalty_that_fits_its_pooling_is_accepted(penalty: str, pooling: str) -> None:
    found = read_settings("", [f"penalty.name={penalty}", f"pooling.name={pooling}"])
    assert found.penalty.name == penalty


def test_words_of_a_vector_file_need_a_vector_file() -> None:
    (found,) = problems("", "vocabulary.vector_words=true")
    assert "vectors.path names no vector file" in found


def test_settings_written_as_toml_read_back_equal() -> None:
    given = read_settings(
        RECIPE,
        ["data.dev_share=0.1", "reader.labels=['a','b']", "text.max_length=9", "data.test=['t']"],
    )
    assert read_settings(settings_toml(given)) == given
    assert read_settings(settings_toml(RunSettings())) == RunSettings()

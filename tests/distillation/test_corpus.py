"""Which sentences a student learns from, and which it never sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from genpool.distillation.corpus import (
    CorpusSettings,
    bare,
    read_corpus,
    sentences_of,
    untokenized,
)
from genpool.errors import ConfigError, DataError


def table(path: Path, *rows: str) -> str:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path.name


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("It 's red .", "It's red."),
        ("they do n't know , ok ?", "they don't know, ok?"),
        ("a ( small ) dog", "a (small) dog"),
        ("`` yes '' -LRB- he said -RRB-", '" yes " (he said)'),
        ("As people write it, already.", "As people write it, already."),
    ],
)
def test_tokens_are_joined_as_people_write_them(given: str, expected: str) -> None:
    assert untokenized(given) == expected


def test_long_texts_are_cut_into_sentences() -> None:
    text = 'It was 3.5 stars. "Great film!" I said. <br /><br />Dr. who? no capital here'
    assert sentences_of(text) == [
        "It was 3.5 stars.",
        '"Great film!',
        "I said.",
        "",
        "Dr. who? no capital here",
    ]


def test_groups_hold_what_belongs_together_and_nothing_twice(tmp_path: Path) -> None:
    name = table(
        tmp_path / "pairs.tsv",
        "a\tb",
        "a man sleeps now\tsomebody is at rest",
        "a man sleeps now\ta dog runs away",
        "A dog runs away!\ttoo short",
    )
    groups = read_corpus(CorpusSettings(tables=(f"{name}:a,b",)), tmp_path)
    assert groups == [["a man sleeps now", "somebody is at rest", "a dog runs away"]]


def test_what_is_left_out_is_nowhere_in_whatever_spelling(tmp_path: Path) -> None:
    train = table(
        tmp_path / "train.tsv", "text", "A man , it 's said , sleeps .", "the cat sits up"
    )
    scored = table(tmp_path / "test.tsv", "x\ty", "a man, it's said, sleeps\tanother one here")
    settings = CorpusSettings(tables=(f"{train}:text",), left_out=(f"{scored}:x,y",))
    assert read_corpus(settings, tmp_path) == [["the cat sits up"]]
    assert bare("A man , it 's said!") == bare("a man, its said")


def test_long_texts_give_at_most_so_many_sentences(tmp_path: Path) -> None:
    rows = [f"Text {n} is here now. Its second one is this {n}." for n in range(20)]
    name = table(tmp_path / "texts.tsv", "text", *rows)
    groups = read_corpus(CorpusSettings(texts=(f"{name}:text:7",)), tmp_path)
    assert sum(map(len, groups)) == 7
    assert groups == read_corpus(CorpusSettings(texts=(f"{name}:text:7",)), tmp_path)
    assert groups != read_corpus(CorpusSettings(texts=(f"{name}:text:7",)), tmp_path, seed=1)


def test_wordnet_gives_definitions_and_examples(tmp_path: Path) -> None:
    line = '0001 00 n 01 word 0 000 | a unit of language; "he said a short word"; "words fail me"'
    for name in ("noun", "verb", "adj", "adv"):
        text = f"  1 licence | not a definition at all\n{line if name == 'noun' else ''}\n"
        (tmp_path / f"data.{name}").write_text(text)
    groups = read_corpus(CorpusSettings(wordnet=str(tmp_path)), tmp_path)
    assert groups == [["a unit of language", "he said a short word", "words fail me"]]
    (tmp_path / "data.adv").unlink()
    with pytest.raises(DataError, match=r"data\.adv"):
        read_corpus(CorpusSettings(wordnet=str(tmp_path)), tmp_path)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="FILE:COLUMN"):
        read_corpus(CorpusSettings(tables=("file.tsv",)), tmp_path)
    with pytest.raises(ConfigError, match="with a number"):
        read_corpus(CorpusSettings(texts=("file.tsv:text",)), tmp_path)
    with pytest.raises(DataError, match="no sentence"):
        read_corpus(CorpusSettings(), tmp_path)

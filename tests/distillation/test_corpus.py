"""Which sentences a student is trained on, and which it never sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from genpool.distillation.corpus import (
    CorpusSettings,
    comparison_key,
    corpus_fingerprint,
    read_corpus,
    split_sentences,
    untokenized,
)
from genpool.errors import ConfigError, DataError


def table(path: Path, *rows: str) -> str:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path.name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It 's red .", "It's red."),
        ("they do n't know , ok ?", "they don't know, ok?"),
        ("a ( small ) dog", "a (small) dog"),
        ("`` yes '' -LRB- he said -RRB-", '" yes " (he said)'),
        ("As people write it, already.", "As people write it, already."),
    ],
)
def test_tokens_are_joined_as_people_write_them(text: str, expected: str) -> None:
    assert untokenized(text) == expected


def test_long_texts_are_cut_into_sentences() -> None:
    text = 'It was 3.5 stars. "Great film!" I said. <br /><br />Dr. who? no capital here'
    assert split_sentences(text) == [
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
    corpus = read_corpus(CorpusSettings(tables=(f"{name}:a,b",)), tmp_path)
    assert corpus.groups == [["a man sleeps now", "somebody is at rest", "a dog runs away"]]
    two = CorpusSettings(tables=(f"{name}:b",), min_words=2, max_words=2)
    assert read_corpus(two, tmp_path).groups == [["too short"]]


def test_excluded_sentences_are_left_out_in_any_case_and_punctuation(
    tmp_path: Path,
) -> None:
    train = table(
        tmp_path / "train.tsv", "text", "A man , it 's said , sleeps .", "the cat sits up"
    )
    scored = table(tmp_path / "test.tsv", "x\ty", "a man, it's said, sleeps\tanother one here")
    settings = CorpusSettings(tables=(f"{train}:text",), exclude=(f"{scored}:x,y",))
    assert read_corpus(settings, tmp_path).groups == [["the cat sits up"]]
    assert comparison_key("A man , it 's said!") == comparison_key("a man, its said")


def test_long_texts_are_used_up_to_the_maximum_number_of_sentences(tmp_path: Path) -> None:
    rows = [f"Text {n} is here now. Its second one is this {n}." for n in range(20)]
    name = table(tmp_path / "texts.tsv", "text", *rows)
    corpus = read_corpus(CorpusSettings(texts=(f"{name}:text:7",)), tmp_path)
    assert sum(map(len, corpus.groups)) == 7
    assert corpus == read_corpus(CorpusSettings(texts=(f"{name}:text:7",)), tmp_path)
    assert corpus != read_corpus(CorpusSettings(texts=(f"{name}:text:7",)), tmp_path, seed=1)


def test_wordnet_gives_definitions_and_examples(tmp_path: Path) -> None:
    line = '0001 00 n 01 word 0 000 | a unit of language; "he said a short word"; "words fail me"'
    for name in ("noun", "verb", "adj", "adv"):
        text = f"  1 licence | not a definition at all\n{line if name == 'noun' else ''}\n"
        (tmp_path / f"data.{name}").write_text(text)
    corpus = read_corpus(CorpusSettings(wordnet=str(tmp_path)), tmp_path)
    assert corpus.groups == [["a unit of language", "he said a short word", "words fail me"]]
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


def test_the_fingerprint_differs_with_sentences_groups_and_dev_scores(tmp_path: Path) -> None:
    dev = tmp_path / "dev.tsv"
    dev.write_text("score\n1\n")
    corpora = [[["a", "b"], ["c"]], [["a"], ["b", "c"]], [["a", "b"], ["d"]], [["b", "a"], ["c"]]]
    values = [corpus_fingerprint(groups, dev) for groups in corpora]
    assert values[0] == corpus_fingerprint([["a", "b"], ["c"]], dev)
    dev.write_text("score\n2\n")
    values.append(corpus_fingerprint(corpora[0], dev))
    values.append(corpus_fingerprint(corpora[0], None))
    assert len(set(values)) == len(values)

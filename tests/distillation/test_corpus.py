"""Which sentences a student is trained on, and which it never sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from genpool.distillation.corpus import (
    Corpus,
    comparison_key,
    read_corpus,
    read_counts,
    split_sentences,
    untokenized,
)
from genpool.distillation.settings import CorpusSettings
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
    expected = ["It was 3.5 stars.", '"Great film!', "I said.", "", "Dr. who? no capital here"]
    assert split_sentences(text) == expected


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
    cut = read_corpus(CorpusSettings(tables=(f"{name}:a,b:2",)), tmp_path)
    assert cut.groups == [["a man sleeps now", "somebody is at rest"]]
    two = CorpusSettings(tables=(f"{name}:b",), min_words=2, max_words=2)
    assert read_corpus(two, tmp_path).groups == [["too short"]]


def test_excluded_sentences_are_left_out_in_any_case_and_punctuation(tmp_path: Path) -> None:
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
    settings = CorpusSettings(texts=(f"{name}:text:7",))
    corpus, again, other = (read_corpus(settings, tmp_path, seed) for seed in (0, 0, 1))
    assert sum(map(len, corpus.groups)) == 7
    assert corpus == again != other


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
    with pytest.raises(ConfigError, match=r"'a'.*\n.*'b=x'"):
        read_counts(["a", "b=x", "c=3"], "corpus.counts")
    assert read_counts(["a=b=3", "*=4"], "corpus.skip") == {"a=b": 3, "*": 4}
    with pytest.raises(DataError, match="no sentence"):
        read_corpus(CorpusSettings(), tmp_path)


def mixed_corpus(folder: Path, rows: list[tuple[str, str]], **settings: object) -> Corpus:
    lines = ["source\ttext", *("\t".join(row) for row in rows)]
    name = table(folder / "mixed.tsv", *lines)
    values = {"mixed": f"{name}:source,text", "min_words": 1, **settings}
    return read_corpus(CorpusSettings(**values), folder)  # type: ignore[arg-type]


def test_every_source_gives_its_number_after_those_held_out_and_skipped(tmp_path: Path) -> None:
    rows = [(f"s{n % 3}", f"text {n}") for n in range(30)]
    corpus = mixed_corpus(tmp_path, rows, counts=("s0=2", "s1=4"), held_out=3)
    held_out = {"s0": ["text 0", "text 3", "text 6"], "s1": ["text 1", "text 4", "text 7"]}
    assert corpus.held_out == held_out
    assert corpus.groups == [[f"text {n}"] for n in (9, 10, 12, 13, 16, 19)]
    assert mixed_corpus(tmp_path, rows, counts=("*=1", "s1=0")).groups == [["text 0"], ["text 2"]]
    corpus = mixed_corpus(tmp_path, rows, counts=("s0=1", "s1=1"), skip=("*=4", "s1=0"), held_out=1)
    assert corpus.held_out == {"s0": ["text 0"], "s1": ["text 1"]}
    assert corpus.groups == [["text 4"], ["text 15"]]
    assert len(mixed_corpus(tmp_path, rows).groups) == 30


def test_empty_repeated_and_excluded_sentences_of_sources_are_left_out(tmp_path: Path) -> None:
    news = ["The first one here", "", "the FIRST one, here!", "It is excluded now"]
    rows = [("news", text) for text in news]
    rows += [("web", "A b c d"), ("web", '{"a": 1}'), ("web", "one two"), ("news", "The last one")]
    table(tmp_path / "test.tsv", "text", "It is excluded: now")
    corpus = mixed_corpus(tmp_path, rows, counts=("*=9",), held_out=1, exclude=("test.tsv:text",))
    assert corpus.held_out == {"news": ["The first one here"], "web": ["A b c d"]}
    assert corpus.groups == [["one two"], ["The last one"]]

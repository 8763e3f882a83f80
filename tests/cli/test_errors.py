"""A user's mistake: exit code 2, one clear message, no traceback, nothing half-written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.training_runs import ONE_THREAD

MODEL = "runs/rules/best"
LATIN = b"A dog\ncaf\xe9\n"
TEXTS = "texts.csv --column text"
SHARDS = "encode -o out/ --engine local"


def words(text: str) -> list[str]:
    return text.split()


MISTAKES: list[tuple[list[str], str]] = [
    (words("train snil"), "unknown recipe 'snil'. Did you mean 'snli'?"),
    (words("train none.toml"), "there is no recipe file none.toml"),
    (words("train rules --set training.epoch=1"), "Did you mean 'training.epochs'?"),
    (words("train rules --set epochs"), "'epochs' is not an override"),
    (words("train rules --bad-rows ignore"), "unknown reader.bad_rows 'ignore'"),
    (words("train rules --select training.epochs=1"), "two values or more"),
    (words("train sick"), "needs the place of the data: --data"),
    (words("train trec --data nowhere"), "nowhere: there is no such file or folder"),
    (words("train trec --data sentences.txt"), "is not a table by its name"),
    (words("train rules --out pairs.tsv"), "pairs.tsv is a file"),
    (words("train rules --out ."), "holds something that is not a run"),
    (words(f"predict {MODEL} nowhere.tsv -o out.tsv"), "there is no such file or folder"),
    (words(f"predict {MODEL} bad.tsv -o out.tsv"), "bad.tsv, line 3: is not UTF-8"),
    (words(f"predict {MODEL} pairs.tsv -o no/out.tsv"), "no/out.tsv: cannot be written"),
    (words("predict nowhere pairs.tsv -o out.tsv"), "nowhere: there is no such folder"),
    (words(f"evaluate --compare {MODEL}"), "expected [MODEL] DATA"),
    (words(f"evaluate {MODEL} pairs.tsv --probe --similarity"), "at most one of"),
    (words(f"evaluate {MODEL} pairs.tsv --json no/out.json"), "no/out.json: cannot be written"),
    (words(f"predict {MODEL} pairs.tsv -o out.tsv --label x"), "unknown column 'x'"),
    (words(f"evaluate {MODEL} unlabelled.tsv"), "unlabelled.tsv, line 1: no column of labels"),
    (words(f"evaluate {MODEL} scored.tsv"), "scored.tsv: 1 of 1 rows have no label"),
    (words(f"evaluate {MODEL} scored.tsv --probe"), "(command line: --label)"),
    (words(f"evaluate {MODEL} pairs.tsv --similarity"), "without a score"),
    (words("evaluate --compare pairs.tsv pairs.tsv"), "expected a tab-separated header"),
    (words(f"encode {MODEL} sentences.txt -o out.txt"), "expected .npy, .parquet, .jsonl"),
    (words(f"encode {MODEL} latin.txt -o out.npy"), "latin.txt, line 2: is not UTF-8"),
    (words(f"encode {MODEL} nowhere.txt -o out.npy"), "there is no such file"),
    (["encode", MODEL, "A dog runs.", "-o", "out.npy"], "one per line: genpool encode - -o"),
    (words(f"encode {MODEL} sentences.txt --column x -o out.npy"), "have no columns to name"),
    (words(f"encode {MODEL} pairs.tsv --column x -o out.npy"), "unknown column 'x'"),
    (words(f"encode {MODEL} - --column x -o out.npy"), "a column needs a file"),
    (words(f"encode {MODEL} a b -o out.npy"), "expected [MODEL] FILE"),
    (words(f"encode {MODEL} pairs.tsv -o out.npy"), "say which column holds the sentences: --col"),
    (words("encode runs sentences.txt -o out.npy"), "it is not a genpool model"),
    (words("similarity a b --model nowhere"), "there is no such folder"),
    (words(f"explain a --model {MODEL} --html no/out.html"), "no/out.html: cannot be written"),
    (words("recipes show snil"), "Did you mean 'snli'?"),
    (words("recipes copy snli no/mine.toml"), "cannot be written"),
    (words(f"similarity sentences.txt films.tsv --model {MODEL}"), "different numbers of lines"),
    (["similarity", "sentences.txt", "A dog."], "is a file and the other is not"),
    (words("similarity a b --plugin no_such_module"), "plugin 'no_such_module' cannot be imported"),
    (words("explain sentences.txt"), "sentences.txt: is a file; expected a sentence"),
    (["explain", "A dog runs.", "typo.txt"], "typo.txt: there is no such file"),
    (["explain", "A dog.", "--nli"], "expected two sentences, and no --model"),
    (words(f"explain dog. cat. --nli --model {MODEL}"), "expected two sentences, and no --model"),
    (words("evaluate pairs.tsv --similarity -o x.tsv"), "-o is for the predictions of a class"),
    (words("evaluate pairs.tsv --reader snil"), "unknown reader 'snil'. Did you mean 'snli'"),
    (words("evaluate pairs.tsv --bad-rows x"), "unknown bad_rows 'x'. Known: error, skip"),
    (words("evaluate --first text no-such-model pairs.tsv"), "line 1: unknown column 'text'"),
    (words("predict --first text no-such-model pairs.tsv"), "line 1: unknown column 'text'"),
    (words("evaluate no-such-model pairs.tsv"), "no-such-model: there is no such folder"),
    (words("predict - --first a --set reader.quotes=true"), "--first, --set: for tables; lines of"),
    (["search", "index", ""], "the query '' has no words"),
    (["search", "index", " \t"], "has no words; expected a sentence"),
    (words("search nowhere a"), "nowhere: there is no such folder; expected an index"),
    (words("search sentences.txt a"), "sentences.txt: is a file; expected an index"),
    (words(f"search {MODEL} a"), "It is a model: give it with --model."),
    (words("search index a --model nowhere"), "nowhere: there is no such folder"),
    # The condition is checked before the model is loaded.
    (words("search index a --where x==1 --model nowhere"), "no columns. Encode with --columns x"),
    (words("index delete index a1"), "has no ids"),
    (words(f"encode {MODEL} sentences.txt -o runs"), "contains something else"),
    (words(f"encode {MODEL} sentences.txt -o -"), "expected .npy, .parquet, .jsonl, or a"),
    (words(f"encode {MODEL} sentences.txt -o sentences.txt/out"), "could not be written"),
    (words(f"encode {TEXTS} -o v.npy --id key"), "v.npy holds an array only"),
    (words("encode texts.csv -o v.parquet --id key"), "--id is for a table; name its column with"),
    (words(f"encode {TEXTS} -o mine/ --columns tongue"), "unknown column 'tongue'"),
    (words(f"encode {TEXTS} -o mine/ --columns a,,b"), "expected names with commas"),
    (words(f"encode {TEXTS} -o v.npy --append"), "only an index: -o FOLDER/ --append"),
    (words(f"encode {TEXTS} -o v.parquet --columns vector"), "are written by genpool"),
    (words("encode pairs.tsv -o out/ --vectors int8"), "--vectors: only for shards; add --engine"),
    (
        words("encode pairs.tsv -o out/ --shard-rows 5 --bad-files skip"),
        "--shard-rows, --bad-files: only for shards",
    ),
    (words(f"{SHARDS} sentences.txt --address localhost:1"), "--address is of a Ray cluster"),
    (words(f"{SHARDS} sentences.txt --runtime onnx"), "leave --runtime out"),
    (words(f"{SHARDS} sentences.txt --columns a,vector"), "none named id or vector"),
    (words(f"{SHARDS} -"), "standard input can be read only once"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=lambda case: str(case)[:60])
def test_a_mistake_is_told_in_one_message_and_leaves_nothing(genpool, place, arguments, message):
    (place / "latin.txt").write_bytes(LATIN)
    (place / "texts.csv").write_text("key,vector,text\na1,x,A dog runs.\n")
    (place / "unlabelled.tsv").write_text("premise\thypothesis\na\tb\n")
    (place / "scored.tsv").write_text("score\tpremise\thypothesis\n1\ta\tb\n")
    (place / "bad.tsv").write_bytes(b"premise\thypothesis\na\tb\ncaf\xe9\tb\n")
    before = sorted(place.rglob("*"))
    said = genpool(*arguments).refused(message)
    assert said.err.startswith("error: ") and said.err.count("error: ") == 1
    assert sorted(place.rglob("*")) == before


def test_all_mistakes_of_a_recipe_are_printed(genpool, place):
    (place / "mine.toml").write_text("[training]\nepochs = 0\nbatch = 3\n[encoder]\nname = 'x'\n")
    said = genpool("train", "mine.toml", "--set", "pooling.heads=none").refused(
        "mine.toml: 4 settings are wrong:"
    )
    assert said.err.count("\n  - ") == 4
    assert not (place / "runs" / "mine").exists()


def test_a_wrong_option_is_told_with_the_usage(genpool):
    genpool("encode", "--nonsense").refused("Usage:", "--nonsense")


def test_an_encoder_is_no_classifier(genpool, place):
    from genpool import SentenceEncoder

    SentenceEncoder.from_pretrained(place / MODEL).save_pretrained(place / "encoder")
    genpool("predict", "encoder", "pairs.tsv", "-o", "out.tsv").refused(
        "holds a SentenceEncoder; expected a classifier", "leave MODEL out"
    )


def test_as_a_process_a_mistake_ends_with_two_and_no_traceback(tmp_path):
    command = [sys.executable, "-m", "genpool", "train", "snil"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=ONE_THREAD)
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.startswith("error: unknown recipe 'snil'.")
    assert "Traceback" not in found.stderr
    assert list(tmp_path.iterdir()) == []

"""Which files a bulk run reads, and what they are called in ids."""

from pathlib import Path

import pytest

from genpool.errors import ConfigError, DataError, InputError
from genpool.integrations.bulk import BulkOptions
from genpool.integrations.bulk.inputs import file_digest, find_inputs


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for name in ("b/y.csv.gz", "a.txt", "b/x.parquet", "b/notes.md", ".hidden.txt", ".git/c.txt"):
        (tmp_path / "corpus" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / name).write_text("a dog\n")
    return tmp_path / "corpus"


def names(*sources: object) -> list[str]:
    return [file.name for file in find_inputs(map(str, sources), Path("/nowhere"))]


def test_files_folders_and_globs(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(corpus) == ["corpus/a.txt", "corpus/b/x.parquet", "corpus/b/y.csv.gz"]
    assert names(corpus / "b" / "notes.md") == ["notes.md"]  # named: read as lines
    assert names(f"{corpus}/b/*.parquet") == ["x.parquet"]
    assert names(f"{corpus}/**/*.gz", corpus / "a.txt") == ["a.txt", "b/y.csv.gz"]
    assert names(corpus / "a.txt", f"{corpus}/*.txt") == ["a.txt"]  # given twice, read once
    expected = names(corpus)  # wherever the command is run
    monkeypatch.chdir(corpus)
    assert names(".") == expected
    monkeypatch.chdir(corpus.parent)
    assert names("corpus") == names("corpus/") == expected


def test_what_cannot_be_read_is_told(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="matches no file"):
        names(f"{corpus}/*.xyz")
    with pytest.raises(DataError, match="there is no such file or folder"):
        names(corpus / "c.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="a folder without tables"):
        names(tmp_path / "empty")
    (tmp_path / "a.txt").write_text("another\n")
    with pytest.raises(InputError, match=r"would both be 'a\.txt' in ids"):
        names(corpus / "a.txt", tmp_path / "a.txt")
    with pytest.raises(InputError, match="is inside the input folder"):
        find_inputs([corpus], corpus / "b" / "out")


def test_a_digest_sees_the_start_the_end_and_the_size(tmp_path: Path) -> None:
    path, data = tmp_path / "a.txt", bytes(range(256)) * 1000
    seen = set()
    for content in (data, b"x" + data[1:], data[:-1] + b"x", data + b"\0", b""):
        path.write_bytes(content)
        seen.add(file_digest(path))
    assert len(seen) == 5
    with pytest.raises(DataError, match="cannot be read"):
        file_digest(tmp_path / "none")


def test_impossible_options_are_refused() -> None:
    with pytest.raises(InputError, match=r"none named id or vector.*chosen with --id"):
        BulkOptions(columns=("id",))
    with pytest.raises(InputError, match="expected each once"):
        BulkOptions(columns=("a", "a"))
    with pytest.raises(InputError, match="none named id or vector or scale"):
        BulkOptions(columns=("scale",), vectors="int8")
    assert BulkOptions(columns=("scale",)).columns == ("scale",)
    with pytest.raises(InputError, match="shard_rows is 0"):
        BulkOptions(shard_rows=0)
    with pytest.raises(ConfigError, match="unknown vectors 'double'"):
        BulkOptions(vectors="double")

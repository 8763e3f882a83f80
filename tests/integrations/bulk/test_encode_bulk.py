"""Bulk encoding: every row once, with the vector it has alone, whatever the form of the inputs."""

import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from genpool import SentenceEncoder
from genpool.config import Part
from genpool.disk.lock import held_folder
from genpool.errors import DataError, FolderError, InputError
from genpool.integrations.bulk import BulkOptions, encode_bulk, engines
from genpool.integrations.bulk.engines import encode_locally
from genpool.integrations.bulk.manifest import MANIFEST
from genpool.integrations.bulk.shard import encode_shard
from genpool.integrations.ray import encode_on_ray
from tests.helpers.bulk_runs import manifest_shards, problems, sentence, shard_bytes, write_texts

ROWS = [sentence(number) for number in range(37)]


@pytest.fixture
def run(sentence_encoder: SentenceEncoder, tmp_path: Path):
    """run("out") encodes the folder `in`, run("out", "a.txt", normalize=True) this file."""

    def encode(out, source="in", encoder=sentence_encoder, engine=encode_locally, **options):
        sources = [tmp_path / name for name in source.split()]
        chosen = BulkOptions(**{"shard_rows": 10, "batch_size": 4, **options})
        return encode_bulk(encoder, sources, tmp_path / out, chosen, engine, show_progress=False)

    return encode


def write_input(folder: Path, name: str) -> Path:
    """37 rows as a file of any kind, with columns key, body and n where it has columns."""
    path = folder / name
    rows = [{"key": f"k{n}", "body": text, "n": n} for n, text in enumerate(ROWS)]
    kind = name.removesuffix(".gz").rsplit(".")[-1]
    if kind == "parquet":
        parquet.write_table(arrow.Table.from_pylist(rows), path, row_group_size=8)
        return path
    lines: list[str] = {
        "txt": ROWS,
        "jsonl": [json.dumps(row) for row in rows],
        "csv": ["key,body,n", *(f'{row["key"]},"{row["body"]}",{row["n"]}' for row in rows)],
        "tsv": ["key\tbody\tn", *(f"{row['key']}\t{row['body']}\t{row['n']}" for row in rows)],
    }[kind]
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv.gz", "a.jsonl", "a.parquet"])
def test_every_row_has_its_id_its_columns_and_its_vector(
    run, sentence_encoder: SentenceEncoder, tmp_path: Path, name: str
) -> None:
    write_input(tmp_path, name)
    is_text, out = name == "a.txt", tmp_path / "out"
    columns = {"column": "body", "columns": ("n", "body"), "id": "key"}
    summary = run("out", name, **({"columns": ("text",)} if is_text else columns))
    table = parquet.read_table(out).to_pydict()
    assert table["id"] == [f"{name}:{n + 1}" if is_text else f"k{n}" for n in range(37)]
    assert table["text" if is_text else "body"] == ROWS
    if not is_text:
        numbers = range(37) if name == "a.parquet" else map(str, range(37))
        assert table["n"] == list(numbers)
    # The second way: every sentence by itself, by the model and not by its inference form.
    expected = np.stack([sentence_encoder.encode(text) for text in ROWS])
    assert np.abs(np.array(table["vector"], np.float32) - expected).max() < 1e-6
    tokens = sum(len(text.split()) for text in ROWS)
    assert (summary.rows, summary.tokens, summary.shards) == (37, tokens, 4)
    assert summary.bytes == sum(path.stat().st_size for path in out.glob("*.parquet"))


@pytest.mark.parametrize("normalize", [False, True])
def test_vectors_can_be_float16_or_int8_with_a_scale(
    run, sentence_encoder: SentenceEncoder, tmp_path: Path, normalize: bool
) -> None:
    write_input(tmp_path, "a.txt")
    expected = sentence_encoder.encode(ROWS, truncate_dim=5, normalize_embeddings=normalize)
    kinds = (("float32", arrow.float32()), ("float16", arrow.float16()), ("int8", arrow.int8()))
    for kind, dtype in kinds:
        run(kind, "a.txt", vectors=kind, truncate_dim=5, normalize=normalize)
        table = parquet.read_table(tmp_path / kind)
        assert table.schema.field("vector").type == arrow.list_(dtype, 5)
        vectors = np.array(table["vector"].to_pylist(), np.float32)
        if kind == "int8":
            vectors *= np.array(table["scale"].to_pylist(), np.float32)[:, None]
            assert np.abs(vectors - expected).max() <= np.abs(expected).max() / 127 / 2 + 1e-6
        else:
            assert np.abs(vectors - expected).max() < (1e-6 if kind == "float32" else 2e-3)


def test_smaller_types_take_less_room(run, make_encoder, tmp_path: Path) -> None:
    encoder = make_encoder(pooling=Part("generalized", {"heads": 40, "hidden_dim": 4}))
    (tmp_path / "a.txt").write_text("".join(f"{sentence(row)}\n" for row in range(3000)))
    options = {"encoder": encoder, "shard_rows": 5000, "batch_size": 128}
    kinds = ("float32", "float16", "int8")
    sizes = {kind: run(kind, "a.txt", vectors=kind, **options).bytes for kind in kinds}
    assert sizes["float32"] == pytest.approx(3000 * encoder.output_dim * 4, rel=0.05)
    assert sizes["float16"] == pytest.approx(sizes["float32"] / 2, rel=0.05)
    assert sizes["int8"] == pytest.approx(sizes["float32"] / 4, rel=0.1)


def test_worker_processes_write_the_bytes_of_one(run, tmp_path: Path) -> None:
    ids = write_texts(tmp_path / "in", files=3, rows=25)
    run("one")
    run("two", engine=partial(encode_locally, workers=2))
    assert len(shard_bytes(tmp_path / "one")) == 9
    assert problems(tmp_path / "two", ids, shard_bytes(tmp_path / "one")) == []


def test_the_same_command_again_repeats_nothing(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_texts(tmp_path / "in", files=2, rows=25)
    out = tmp_path / "out"
    first = run("out")
    before, manifest = shard_bytes(out), (out / MANIFEST).read_bytes()
    times = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}

    def never(*_: object) -> None:
        raise AssertionError("encoded again")

    monkeypatch.setattr("genpool.integrations.bulk.engines.encode_shard", never)
    monkeypatch.setattr("genpool.integrations.bulk.inputs.plan_file", never)
    again = run("out")
    assert (again.rows, again.earlier_rows, again.tokens) == (first.rows, 50, first.tokens)
    assert shard_bytes(out) == before and (out / MANIFEST).read_bytes() == manifest
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == times
    monkeypatch.undo()
    # A shard that is missing has the same bytes again, whatever was encoded before it.
    (out / "part-00001-00002.parquet").unlink()
    assert run("out").earlier_rows == 45
    assert shard_bytes(out) == before
    complete, lines = manifest_shards(out), (out / MANIFEST).read_text().splitlines(keepends=True)
    # Killed while it wrote the last line: the shard has its name, and is not encoded again.
    (out / MANIFEST).write_text("".join(lines[:-1]) + lines[-1][:20])
    monkeypatch.setattr("genpool.integrations.bulk.engines.encode_shard", None)
    assert run("out").rows == 50
    assert manifest_shards(out) == complete


def test_a_foreign_file_under_the_name_of_a_shard_is_not_taken_for_it(run, tmp_path: Path) -> None:
    ids = write_texts(tmp_path / "in", files=1, rows=25)
    run("calm")
    run("other", normalize=True)
    out = tmp_path / "out"
    run("out")
    lines = (out / MANIFEST).read_text().splitlines(keepends=True)
    (out / MANIFEST).write_text("".join(lines[:-2]))
    other = shard_bytes(tmp_path / "other")
    (out / "part-00000-00001.parquet").write_bytes(other["part-00000-00001.parquet"])
    (out / "part-00000-00002.parquet").write_bytes(b"PAR1 half")
    run("out")
    assert problems(out, ids, shard_bytes(tmp_path / "calm")) == []


def test_another_model_other_options_and_other_inputs_are_refused_in_words(
    run, make_encoder, tmp_path: Path
) -> None:
    write_texts(tmp_path / "in", files=2, rows=12)
    run("out")
    before = shard_bytes(tmp_path / "out")
    for changed, message in (
        ({"shard_rows": 7}, "shard_rows was 10, now 7"),
        ({"normalize": True, "vectors": "int8"}, "normalize was False, now True"),
        ({"truncate_dim": 3}, "truncate_dim was None, now 3"),
    ):
        with pytest.raises(FolderError, match=message):
            run("out", **changed)
    assert shard_bytes(tmp_path / "out") == before
    with pytest.raises(FolderError, match=r"model was sha256:.*, now sha256:"):
        run("out", encoder=make_encoder(seed=5))
    (tmp_path / "in" / "000.txt").write_text("another text\n" * 12)
    with pytest.raises(InputError, match=r"000\.txt has changed since .*out was begun"):
        run("out")
    write_texts(tmp_path / "in", files=3, rows=12)
    with pytest.raises(FolderError, match=r"inputs: in/002\.txt new"):
        run("out")


def test_a_folder_of_somebody_else_is_refused(run, tmp_path: Path) -> None:
    write_texts(tmp_path / "in", files=1, rows=3)
    (tmp_path / "out").mkdir()
    in_use = pytest.raises(FolderError, match="is in use: process")
    with held_folder(tmp_path / "out", FolderError), in_use:
        run("out")
    for workers in (0, -1):
        for engine in (encode_locally, encode_on_ray):
            with pytest.raises(InputError, match=f"workers is {workers}"):
                run("new", engine=partial(engine, workers=workers))
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(FolderError, match=r"contains something else.*thesis\.tex"):
        run("out")
    with pytest.raises(FolderError, match="is a file; expected a folder"):
        run("out/thesis.tex")


def test_bad_rows_are_errors_with_file_and_line_or_counted(run, tmp_path: Path) -> None:
    rows = [json.dumps({"body": text}) for text in ROWS]
    rows[15], rows[30] = "{broken", json.dumps({"other": 1})
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    with pytest.raises(DataError, match=r"a\.jsonl, line 16: is not JSON.*--bad-rows skip"):
        run("out", "a.jsonl", column="body")
    out = tmp_path / "out2"
    summary = run("out2", "a.jsonl", column="body", bad_rows="skip")
    assert summary.skipped == {"invalid JSON": 1, "missing field": 1}
    # The rows after a bad one keep their ids.
    expected = [f"a.jsonl:{row}" for row in range(1, 38) if row not in (16, 31)]
    assert parquet.read_table(out)["id"].to_pylist() == expected


def test_cut_sentences_are_counted(run, make_encoder, tmp_path: Path) -> None:
    encoder = make_encoder()
    encoder.text.max_length = 2
    write_input(tmp_path, "a.txt")
    summary = run("out", "a.txt", encoder=encoder)
    lengths = [len(text.split()) for text in ROWS]
    assert summary.cut_sentences == sum(length > 2 for length in lengths)
    assert summary.cut_tokens == sum(max(length - 2, 0) for length in lengths)
    assert summary.tokens == sum(min(length, 2) for length in lengths)
    assert f"{summary.cut_sentences} sentences by {summary.cut_tokens} tokens" in summary.lines()[1]


def test_columns_of_different_types_are_told(run, tmp_path: Path) -> None:
    for name, values in (("a", [1, 2]), ("b", ["x", "y"])):
        table = arrow.table({"body": ["a dog", "the man"], "n": values})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    options = {"source": "a.parquet b.parquet", "column": "body", "columns": ("n",)}
    assert run("text", **options).rows == 4  # one of them is text: so is the column
    assert parquet.read_table(tmp_path / "text")["n"].to_pylist() == ["1", "2", "x", "y"]
    parquet.write_table(arrow.table({"body": ["a dog"], "n": [0.5]}), tmp_path / "b.parquet")
    with pytest.raises(
        DataError, match=r"b\.parquet: column 'n' is double; in .*a\.parquet.*int64"
    ):
        run("out", **options)


def test_ctrl_c_says_how_far_it_was_and_the_next_run_continues(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = write_texts(tmp_path / "in", files=1, rows=25)
    calls = 0

    def interrupted(*arguments: object):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return encode_shard(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engines, "encode_shard", interrupted)
    with pytest.raises(KeyboardInterrupt, match="stopped after 20 of 25 rows; finished shards are"):
        run("out")
    assert run("out").earlier_rows == 20
    monkeypatch.undo()
    run("calm")
    assert problems(tmp_path / "out", ids, shard_bytes(tmp_path / "calm")) == []


# --- other programs read the shards directly


def with_pandas(folder: Path) -> np.ndarray:
    return np.stack(pandas.read_parquet(folder)["vector"].to_list())


def with_polars(folder: Path) -> np.ndarray:
    return np.array(polars.read_parquet(folder / "*.parquet")["vector"].to_list())


def with_duckdb(folder: Path) -> np.ndarray:
    duckdb = pytest.importorskip("duckdb")
    files = f"read_parquet('{folder}/*.parquet', filename = true, file_row_number = true)"
    rows = duckdb.sql(f"select vector from {files} order by filename, file_row_number").fetchall()
    return np.array([row[0] for row in rows])


def with_lancedb(folder: Path) -> np.ndarray:
    database = pytest.importorskip("lancedb").connect(folder.parent / "lance")
    rows = database.create_table("rows", parquet.read_table(folder)).to_arrow()
    return np.array(rows["vector"].to_pylist(), np.float32)


def with_faiss(folder: Path) -> np.ndarray:
    """FAISS takes the values of the column as they are."""
    faiss, column = pytest.importorskip("faiss"), parquet.read_table(folder)["vector"]
    values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    index = faiss.IndexFlatL2(column.type.list_size)
    index.add(values.reshape(-1, index.d).astype(np.float32))
    return np.asarray(index.reconstruct_n(0, index.ntotal))


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize("read", [with_pandas, with_polars, with_duckdb, with_lancedb, with_faiss])
@pytest.mark.filterwarnings("ignore")  # of what LanceDB loads
def test_other_programs_read_the_vectors(
    run, sentence_encoder: SentenceEncoder, tmp_path: Path, kind: str, read
) -> None:
    write_input(tmp_path, "a.txt")
    run("out", "a.txt", vectors=kind)
    expected = sentence_encoder.encode(ROWS)
    if kind == "int8":
        expected = np.round(expected / (np.abs(expected).max(axis=1, keepdims=True) / 127))
    vectors = read(tmp_path / "out")
    assert vectors.shape == expected.shape
    # Half a step of float16 or of an integer, where rounding could go either way.
    largest = max(1.0, float(np.abs(expected).max()))
    assert np.abs(vectors.astype(np.float64) - expected).max() <= 1e-3 * largest

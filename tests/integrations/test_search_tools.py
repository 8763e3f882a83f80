"""The tools that people search with: each gets the vectors that `encode` returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genpool import SentenceEncoder
from tests.helpers.commands import Command
from tests.helpers.small_indexes import by_loops, random_vectors, write_index

TEXTS = ["a dog runs .", "the man sleeps", "two red dogs", ""]


def unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))


@pytest.fixture
def folder(sentence_encoder: SentenceEncoder, tmp_path: Path) -> str:
    sentence_encoder.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def test_langchain(sentence_encoder: SentenceEncoder, folder: str) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.vectorstores import InMemoryVectorStore

    from genpool.integrations.langchain import GenpoolEmbeddings

    vectors = np.asarray(sentence_encoder.encode(TEXTS))
    embeddings = GenpoolEmbeddings(folder)
    assert np.abs(np.array(embeddings.embed_documents(TEXTS)) - unit(vectors)).max() < 1e-6
    assert np.abs(np.array(embeddings.embed_query(TEXTS[1])) - unit(vectors)[1]).max() < 1e-6
    assert embeddings.embed_documents([]) == []
    short = GenpoolEmbeddings(sentence_encoder, normalize=False, truncate_dim=3)
    assert np.abs(np.array(short.embed_documents(TEXTS)) - vectors[:, :3]).max() < 1e-6
    store = InMemoryVectorStore.from_texts(TEXTS[:3], embeddings)
    expected = by_loops(vectors[:3], vectors[2], 3)
    found = store.similarity_search_with_score(TEXTS[2], k=3)
    assert [document.page_content for document, _ in found] == [TEXTS[row] for row, _ in expected]
    assert [score for _, score in found] == pytest.approx([s for _, s in expected], abs=1e-5)


def test_llama_index(sentence_encoder: SentenceEncoder, folder: str) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode

    from genpool.integrations.llama_index import GenpoolEmbedding

    vectors = np.asarray(sentence_encoder.encode(TEXTS))
    embedding = GenpoolEmbedding(folder, embed_batch_size=2)
    assert embedding.model_name == folder
    found = embedding.get_text_embedding_batch(TEXTS)
    assert np.abs(np.array(found) - unit(vectors)).max() < 1e-6
    assert np.abs(np.array(embedding.get_query_embedding(TEXTS[0])) - unit(vectors)[0]).max() < 1e-6
    nodes = [TextNode(text=text) for text in TEXTS[:3]]
    index = VectorStoreIndex(nodes, embed_model=embedding)
    hits = index.as_retriever(similarity_top_k=3).retrieve(TEXTS[2])
    expected = by_loops(vectors[:3], vectors[2], 3)
    assert [hit.node.get_content() for hit in hits] == [TEXTS[row] for row, _ in expected]


def test_txtai_takes_a_function_that_encodes(sentence_encoder: SentenceEncoder) -> None:
    txtai = pytest.importorskip("txtai", reason="txtai is not installed")

    def encode(texts: list[str]) -> np.ndarray:
        return np.asarray(sentence_encoder.encode(texts))

    # A function: txtai would call a bound method without arguments, to make an instance.
    settings = {"method": "external", "transform": encode, "backend": "numpy"}
    embeddings = txtai.Embeddings(settings)
    embeddings.index(TEXTS[:3])
    vectors = np.asarray(sentence_encoder.encode(TEXTS))
    expected = by_loops(vectors[:3], vectors[2], 3)
    assert [row for row, _ in embeddings.search(TEXTS[2], 3)] == [row for row, _ in expected]


@pytest.mark.parametrize(
    ("kind", "factory"), [("folder", "Flat"), ("npy", "HNSW16"), ("folder", "IVF2,Flat")]
)
def test_faiss_gets_an_index_folder_or_an_array(tmp_path: Path, kind: str, factory: str) -> None:
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed (extra faiss)")
    from genpool.integrations.faiss import write_faiss

    vectors = random_vectors(40, 6) * np.linspace(0.1, 9, 40, dtype=np.float32)[:, None]
    source = tmp_path / "vectors.npy"
    if kind == "npy":
        np.save(source, vectors)
    else:
        source = write_index(tmp_path / "index", vectors)
    assert write_faiss(source, tmp_path / "v.faiss", factory) == 40
    index = faiss.read_index(str(tmp_path / "v.faiss"))
    if factory.startswith("IVF"):
        index.nprobe = 2
    query = random_vectors(6, seed=1)
    scores, rows = index.search(unit(query)[None], 3)
    expected = by_loops(vectors, query, 3)
    assert rows[0].tolist() == [row for row, _ in expected]
    assert scores[0].tolist() == pytest.approx([score for _, score in expected], abs=1e-5)


def test_spacy_documents_have_the_sentence_vector(
    sentence_encoder: SentenceEncoder, folder: str
) -> None:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed (extra spacy)")
    import genpool.integrations.spacy  # noqa: F401  (registers the component)

    nlp = spacy.blank("en")
    nlp.add_pipe("genpool", config={"model": folder})
    vectors = np.asarray(sentence_encoder.encode(TEXTS))
    docs = list(nlp.pipe(TEXTS, batch_size=3))
    for doc, vector in zip(docs, vectors, strict=True):
        assert np.abs(doc.vector - vector).max() < 1e-6
    assert np.abs(nlp(TEXTS[1]).vector - vectors[1]).max() < 1e-6
    cosine = float(unit(vectors)[0] @ unit(vectors)[2])
    assert docs[0].similarity(docs[2]) == pytest.approx(cosine, abs=1e-5)


def test_lancedb_encodes_texts_of_a_table_and_queries(
    sentence_encoder: SentenceEncoder, folder: str, tmp_path: Path
) -> None:
    lancedb = pytest.importorskip("lancedb", reason="lancedb is not installed (extra lancedb)")
    from lancedb.embeddings import get_registry
    from lancedb.pydantic import LanceModel, Vector

    import genpool.integrations.lancedb  # noqa: F401  (registers the function)

    function = get_registry().get("genpool").create(model=folder)
    dim = sentence_encoder.output_dim

    class Row(LanceModel):
        text: str = function.SourceField()
        vector: Vector(dim) = function.VectorField()  # type: ignore[valid-type]

    table = lancedb.connect(tmp_path / "db").create_table("texts", schema=Row)
    table.add([{"text": text} for text in TEXTS[:3]])
    vectors = np.asarray(sentence_encoder.encode(TEXTS))
    expected = by_loops(vectors[:3], vectors[2], 3)
    hits = table.search(TEXTS[2]).distance_type("cosine").limit(3).to_list()
    assert [hit["text"] for hit in hits] == [TEXTS[row] for row, _ in expected]
    stored = {row["text"]: row["vector"] for row in table.to_arrow().to_pylist()}
    assert np.abs(np.array([stored[text] for text in TEXTS[:3]]) - vectors[:3]).max() < 1e-6


def test_encode_makes_and_extends_a_table_of_lancedb(
    genpool: Command, tmp_path: Path, folder: str, sentence_encoder: SentenceEncoder
) -> None:
    lancedb = pytest.importorskip("lancedb", reason="lancedb is not installed (extra lancedb)")
    table, more = tmp_path / "texts.csv", tmp_path / "more.csv"
    table.write_text("key,text\na1,a dog runs .\na2,the man sleeps\n")
    more.write_text("key,text\na3,two red dogs\n")
    output = tmp_path / "db" / "texts.lance"
    options = ("--column", "text", "--id", "key")

    def rows() -> list[dict[str, Any]]:
        opened = lancedb.connect(output.parent).open_table("texts")
        return list(opened.to_arrow().to_pylist())

    said = genpool("encode", folder, table, "-o", output, *options)
    assert said.code == 0, said.err
    said = genpool("encode", folder, more, "-o", output, *options, "--append")
    assert said.code == 0, said.err
    assert [row["key"] for row in rows()] == ["a1", "a2", "a3"]
    vectors = np.asarray(sentence_encoder.encode([row["sentence"] for row in rows()]))
    assert np.abs(np.array([row["vector"] for row in rows()]) - vectors).max() < 1e-5
    opened = lancedb.connect(output.parent).open_table("texts")
    [hit] = opened.search("two red dogs").limit(1).to_list()  # it knows the function of its vectors
    assert hit["key"] == "a3"
    said = genpool("encode", folder, more, "-o", output, *options)
    assert said.code == 0, said.err
    assert [row["key"] for row in rows()] == ["a3"]
    assert [path.name for path in output.parent.iterdir()] == ["texts.lance"]

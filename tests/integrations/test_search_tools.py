"""The tools that people search with: each gets the vectors that `encode` returns."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.search import ModelReference, index_writer
from tests.helpers.commands import Command
from tests.helpers.small_indexes import by_loops, random_vectors, unit, write_index

TEXTS = ["a dog runs .", "the man sleeps", "two red dogs", ""]
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "tools.md"
BLOCKS = re.findall(
    r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
#: the library of every block, in the order of the page
NAMES = "langchain_core llama_index txtai spacy faiss faiss lancedb qdrant_client fastapi"
LIBRARIES = NAMES.split()


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

    genpool("encode", folder, table, "-o", output, *options).ok()
    genpool("encode", folder, more, "-o", output, *options, "--append").ok()
    assert [row["key"] for row in rows()] == ["a1", "a2", "a3"]
    vectors = np.asarray(sentence_encoder.encode([row["sentence"] for row in rows()]))
    assert np.abs(np.array([row["vector"] for row in rows()]) - vectors).max() < 1e-5
    opened = lancedb.connect(output.parent).open_table("texts")
    [hit] = opened.search("two red dogs").limit(1).to_list()  # it knows the function of its vectors
    assert hit["key"] == "a3"
    genpool("encode", folder, more, "-o", output, *options).ok()
    assert [row["key"] for row in rows()] == ["a3"]
    assert [path.name for path in output.parent.iterdir()] == ["texts.lance"]


@pytest.mark.parametrize("number", range(len(LIBRARIES)), ids=lambda number: LIBRARIES[number])
def test_the_lines_for_a_library_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines for other libraries in docs/guides/tools.md run where the library is installed."""
    assert len(BLOCKS) == len(LIBRARIES)
    assert LIBRARIES[number] in BLOCKS[number]
    if find_spec(LIBRARIES[number]) is None:
        pytest.skip(f"{LIBRARIES[number]} is not installed")
    monkeypatch.chdir(tmp_path)
    model = SentenceEncoder.from_pretrained()
    sentences = ["A dog runs.", "It rains.", "The price of oil fell."]
    vectors = np.asarray(model.encode(sentences))
    with index_writer(tmp_path / "library", model.output_dim, ModelReference("embedded")) as add:
        add(sentences, vectors)
    namespace: dict[str, Any] = {"__name__": "page", "model": model, "sentences": sentences}
    exec(compile(BLOCKS[number], str(PAGE), "exec", dont_inherit=True), namespace)
    if "an animal" in BLOCKS[number]:  # of the sentences, the one of the dog is the nearest
        printed = capsys.readouterr().out
        assert "A dog runs." in printed or printed.startswith("[(0, ")
    if LIBRARIES[number] == "fastapi":
        assert np.abs(np.array(namespace["vectors"](sentences)) - vectors).max() < 1e-5
    if "write_faiss" in BLOCKS[number]:
        import faiss

        assert faiss.read_index("library.faiss").ntotal == len(sentences)

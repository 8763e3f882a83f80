"""Models of any folder, for the other integrations and the commands."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from genpool.disk.files import is_file
from genpool.disk.folder_format import ST_MODULES
from genpool.errors import InputError
from genpool.inference.explanation import Explanation, PairExplanation, explain_states
from genpool.inference.sentence_vectors import SentenceVectors, map_by_length
from genpool.model import PairClassifier, SentenceEncoder, TextClassifier, load_model
from genpool.pooling import Pooled
from genpool.saving.saved_model import SavedModel
from genpool.saving.storage import MODEL
from genpool.text import TruncationReport
from genpool.text.validation import require_text

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from genpool.integrations.onnx import Export
    from genpool.integrations.sentence_transformers import PoolingModule


def load_encoder(path: str | Path | None = None) -> SentenceEncoder | SentenceTransformerEncoder:
    """Loads a folder of genpool or of sentence-transformers; nothing in it is run as code.

    Args:
        path: a folder that genpool saved (of a classifier its encoder is loaded), or that
            sentence-transformers saved. Default: None, the encoder inside the package.

    Returns:
        An encoder with `encode`, `encode_stream`, `similarity` and `explain`.

    Raises:
        FolderError: the folder is missing, damaged, of another kind, or asks for code or a pickle.
        MissingExtraError: the folder is of sentence-transformers, which is not installed.

    Example:
        >>> load_encoder("minilm-generalized").encode(["A man sleeps."])
    """
    return _sentence_transformer(path) or SentenceEncoder.from_pretrained(path)


def load_explainable(
    path: str | Path,
) -> SentenceEncoder | TextClassifier | PairClassifier | SentenceTransformerEncoder:
    """Loads a folder like `load_encoder`, but a classifier as a classifier."""
    return _sentence_transformer(path) or load_model(path)


def as_encoder(model: str | Path | SentenceVectors | None) -> SentenceVectors:
    """Returns an encoder as it is, or loads it from a folder like `load_encoder`."""
    return load_encoder(model) if model is None or isinstance(model, str | Path) else model


def _sentence_transformer(path: str | Path | None) -> SentenceTransformerEncoder | None:
    if path is None or not is_file(Path(path) / ST_MODULES):
        return None
    from genpool.integrations.sentence_transformers import load

    return SentenceTransformerEncoder(load(path, device="cpu"))


class SentenceTransformerEncoder(SentenceVectors):
    """A SentenceTransformer as an encoder of genpool, for its commands."""

    def __init__(self, model: SentenceTransformer) -> None:
        self.model = model.eval()
        self.output_dim = int(cast(int, model.get_embedding_dimension()))
        self.device, self.dtype = model.device, next(model.parameters()).dtype
        # What the commands report of a text pipeline; the library does not count what it cuts.
        self.text: Any = SimpleNamespace(
            max_length=model.max_seq_length, cut=TruncationReport(), annotator=None
        )

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim) of words, which are joined by spaces."""
        return self._encode_batch([" ".join(words) for words in sentences])

    def _encode_texts(
        self, texts: Iterator[str], batch_size: int, done: Callable[[int], object]
    ) -> Iterator[Tensor]:
        def length(text: str) -> int:
            return len(text) // 4  # characters of a token, or so

        return map_by_length(texts, length, self._encode_batch, batch_size, done)

    def _encode_batch(self, texts: list[str]) -> Tensor:
        return self.model.encode(
            texts, batch_size=len(texts), convert_to_tensor=True, show_progress_bar=False
        )

    def explain(self, sentence: str) -> Explanation:
        """Returns the weights of each head of genpool's pooling, per token and dimension."""
        from genpool.integrations.probing.token_states import word_pieces
        from genpool.integrations.sentence_transformers.modules import states_and_mask

        before, pooling, later = self._around_pooling()
        features: dict[str, Any] = {
            name: value.to(self.device) if isinstance(value, Tensor) else value
            for name, value in self.model.preprocess([require_text(sentence)]).items()
        }
        with torch.no_grad():
            for module in before:
                features = module(features)
        states, mask = states_and_mask(features, pooling.include_prompt)

        def project(pooled: Pooled) -> Pooled:
            result: dict[str, Any] = {"sentence_embedding": pooled.vector}
            for module in later:
                result = module(result)
            return pooled._replace(vector=result["sentence_embedding"])

        tokens = word_pieces(self.model.tokenizer, sentence, self.text.max_length)
        return explain_states(sentence, tokens, states[0][mask[0]], pooling.pooling, project)

    def explain_pair(self, first: str, second: str) -> PairExplanation:
        """Returns which words two sentences are alike by."""
        return PairExplanation(self.explain(first), self.explain(second))

    def export_onnx(self, folder: str | Path, int8: bool = False) -> Export:
        """Writes transformer, pooling and later modules as one ONNX graph, and the tokenizer."""
        from genpool.integrations.onnx import export_transformer

        before, pooling, later = self._around_pooling()
        if len(before) != 1 or not hasattr(before[0], "auto_model"):
            names = ", ".join(type(module).__name__ for module in before)
            raise InputError(
                f"before the pooling the model has {names}; expected one Transformer. Export the "
                "parts yourself: genpool.integrations.onnx.export_transformer."
            )
        transformer = before[0].auto_model
        return export_transformer(transformer, pooling, folder, int8, self.model.tokenizer, later)

    def _around_pooling(self) -> tuple[list[Any], PoolingModule, list[Any]]:
        """Returns the modules before genpool's pooling, the pooling, and those after it."""
        from genpool.integrations.sentence_transformers import PoolingModule

        modules = list(self.model)
        for place, module in enumerate(modules):
            if isinstance(module, PoolingModule):
                return modules[:place], module, modules[place + 1 :]
        names = ", ".join(type(module).__name__ for module in modules)
        raise InputError(
            f"the model has the modules {names}; expected genpool's PoolingModule among them, "
            "which is what can be explained and exported."
        )


class FolderBytes:
    """A model as the bytes of its saved folder, for pickles and other processes; they are checked
    when they are read, as in every folder."""

    def __init__(self, model: SavedModel) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            model.save_pretrained(folder)
            self.files = {name: (folder / name).read_bytes() for name in MODEL.files}

    def load(self) -> Any:
        """Returns the model."""
        with tempfile.TemporaryDirectory() as temporary:
            for name in MODEL.files:
                (Path(temporary) / name).write_bytes(self.files[name])
            return load_model(temporary)

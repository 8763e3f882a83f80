"""A transformer, or a module of a user, with a pooling of genpool as one ONNX graph."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genpool.errors import FolderError, InputError
from genpool.integrations.onnx import ExportError, OnnxEncoder, export_transformer
from genpool.integrations.onnx.graph import quiet
from genpool.pooling import POOLINGS, GatedPooling, GeneralizedPooling, Pooled, Pooling
from tests.helpers.small_models import lively
from tests.integrations.tiny_bert import heads_by_loops, tiny_bert
from tests.pooling.cases import CASES, Case

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def parts() -> tuple[torch.nn.Module, GeneralizedPooling]:
    return tiny_bert(30, 8, positions=24), lively(GeneralizedPooling(8, heads=2))


@pytest.fixture(scope="module")
def exported(
    parts: tuple[torch.nn.Module, GeneralizedPooling], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "bert"
    assert export_transformer(*parts, folder).difference < 1e-5
    return folder


@pytest.mark.parametrize("lengths", [(1,), (3, 11, 24), (2, 2), (5, 1, 1, 1, 1, 1, 1, 1)])
def test_the_graph_returns_generalized_pooling_of_the_states(
    parts: tuple[torch.nn.Module, GeneralizedPooling], exported: Path, lengths: tuple[int, ...]
) -> None:
    session = onnxruntime.InferenceSession(str(exported / "model.onnx"))
    chance = np.random.default_rng(0)
    sentences = [chance.integers(30, size=length).tolist() for length in lengths]
    ids = np.full((len(lengths), max(lengths) if max(lengths) == 24 else max(lengths) + 2), 29)
    mask = np.zeros_like(ids)
    for row, sentence in enumerate(sentences):
        ids[row, : len(sentence)], mask[row, : len(sentence)] = sentence, 1
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    (actual,) = session.run(["sentence_embedding"], feeds)
    bert, pooling = parts
    states = [bert(torch.tensor([sentence])).last_hidden_state[0] for sentence in sentences]
    expected = [heads_by_loops(tokens, pooling).ravel() for tokens in states]
    assert np.abs(actual - expected).max() < 1e-5


def test_the_folder_says_what_it_is(exported: Path) -> None:
    config = json.loads((exported / "config.json").read_text())
    assert config["inputs"] == ["input_ids", "attention_mask", "token_type_ids"]
    assert config["output_dim"] == 16
    assert "BertModel with GeneralizedPooling" in (exported / "README.md").read_text()
    with pytest.raises(FolderError, match=r"graph of a transformer; .*README\.md lists"):
        OnnxEncoder.from_pretrained(exported)


class Unforeseen(Pooling):
    """Branches on a value of the states, which no graph can know."""

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> Pooled:
        vector = states.mean(dim=1) if float(states.sum()) > 0 else states.amax(dim=1)
        return Pooled(vector, vector.unsqueeze(1), None)


def test_what_has_no_graph_is_reported_in_words_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"cannot make a graph .* generalized, scalar"):
        export_transformer(tiny_bert(30, 8), Unforeseen(8), tmp_path / "out")
    bert = tiny_bert(30, 8)
    with pytest.raises(InputError, match=r"width 8, the pooling was made with input_dim=6"):
        export_transformer(bert, GeneralizedPooling(6), tmp_path / "out")
    with pytest.raises(InputError, match="GatedPooling; expected one"):
        export_transformer(bert, GatedPooling(8), tmp_path / "out")
    with pytest.raises(InputError, match=r"Linear has no config.vocab_size"):
        export_transformer(torch.nn.Linear(8, 8), GeneralizedPooling(8), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# --- plain `torch.onnx.export`

USER_DIM = 6


class UserModule(nn.Module):
    """An embedding and a pooling, as somebody else would write it."""

    def __init__(self, pooling: nn.Module) -> None:
        super().__init__()
        self.table = nn.Embedding(20, USER_DIM)
        self.pooling = pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        vector: Tensor = self.pooling(self.table(input_ids), attention_mask).vector
        return vector


def make_inputs(batch: int, time: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(batch * 100 + time)
    ids = torch.randint(20, (batch, time), generator=random)
    lengths = torch.randint(1, time + 1, (batch, 1), generator=random)
    return ids, (torch.arange(time) < lengths).to(dtype)


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        pytest.param(case, dtype, marks=() if case.name == "generalized" else pytest.mark.slow)
        for case in CASES
        if not POOLINGS[case.name].needs_gates
        # The mask is made boolean by one function for all poolings.
        for dtype in (torch.int64, torch.bool)[: 2 if case.name == "generalized" else 1]
    ],
    ids=str,
)
def test_plain_export_of_a_users_module_takes_any_batch_and_any_length(
    case: Case, dtype: torch.dtype, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    module = UserModule(case.make(USER_DIM)).eval()
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("time")}
    with quiet():
        program = torch.onnx.export(
            module,
            make_inputs(3, 5, dtype),
            dynamo=True,
            input_names=["input_ids", "attention_mask"],
            dynamic_shapes=(sizes, sizes),
            verbose=False,
        )
    assert program is not None
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for batch, time in [(3, 5), (1, 1), (7, 2), (2, 31)]:
        ids, mask = make_inputs(batch, time, dtype)
        feeds = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        (actual,) = session.run(None, feeds)
        np.testing.assert_allclose(actual, module(ids, mask).detach().numpy(), atol=1e-5)

"""Plain `torch.onnx.export` of a user's own module with a pooling inside: any batch, any length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genpool.integrations.onnx.graph import quiet
from genpool.pooling import POOLINGS
from tests.pooling.cases import CASES, Case

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

DIM = 6
EXPORTED = [case for case in CASES if not POOLINGS[case.name].needs_gates]


class UserModule(nn.Module):
    """An embedding and a pooling, as somebody else would write it."""

    def __init__(self, pooling: nn.Module) -> None:
        super().__init__()
        self.table = nn.Embedding(20, DIM)
        self.pooling = pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        vector: Tensor = self.pooling(self.table(input_ids), attention_mask).vector
        return vector


def make_inputs(batch: int, time: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(batch * 100 + time)
    ids = torch.randint(20, (batch, time), generator=random)
    lengths = torch.randint(1, time + 1, (batch, 1), generator=random)
    return ids, (torch.arange(time) < lengths).to(dtype)


def assert_graph_agrees(path: Path, module: nn.Module, dtype: torch.dtype) -> None:
    session = onnxruntime.InferenceSession(str(path))
    for batch, time in [(3, 5), (1, 1), (7, 2), (2, 31)]:
        ids, mask = make_inputs(batch, time, dtype)
        feeds = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        (actual,) = session.run(None, feeds)
        with torch.no_grad():
            expected = module(ids, mask).numpy()
        np.testing.assert_allclose(actual, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("case", EXPORTED, ids=str)
def test_the_graph_takes_any_batch_and_any_length(
    case: Case, dtype: torch.dtype, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    module = UserModule(case.make(DIM)).eval()
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
    assert_graph_agrees(tmp_path / "model.onnx", module, dtype)

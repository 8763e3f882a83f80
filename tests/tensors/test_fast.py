"""Fast paths on and off: the same outputs and gradients."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from genpool.tensors.modules import fast, fast_paths, run_both
from tests.helpers.random_encoders import model


def outputs_and_gradients(made, batch, enabled):
    made.zero_grad()
    with fast_paths(enabled):
        pooled = made(batch)
        torch.manual_seed(0)
        (pooled.vector * torch.randn_like(pooled.vector)).sum().backward()
    trained = [weights for weights in made.parameters() if weights.requires_grad]
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in trained]
    return pooled.vector.detach(), gradients


@pytest.mark.parametrize(
    ("layers", "lengths", "threads"),
    [
        (1, [1], 2),
        (3, [7, 1, 4, 4, 2], 1),
        (3, [7, 1, 4, 4, 2], 2),
        (1, [0, 2, 0, 6], 1),
        (1, [0], 2),
    ],
)
def test_same_outputs_and_gradients_with_and_without(layers, lengths, threads):
    made = model("stacked-bilstm", layers=layers).eval()
    batch = made.text.batch([["dog", "a", "zz", "the", "a", "man", "x"][:n] for n in lengths])
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        quick, quick_gradients = outputs_and_gradients(made, batch, True)
        plain, plain_gradients = outputs_and_gradients(made, batch, False)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(quick, plain, rtol=1e-5, atol=1e-5)
    for one, other in zip(quick_gradients, plain_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_the_switch_is_undone_after_an_error():
    assert fast()
    with pytest.raises(ZeroDivisionError), fast_paths(False):
        assert not fast()
        raise ZeroDivisionError
    assert fast()


def test_the_environment_turns_fast_paths_off():
    command = "from genpool.tensors.modules import fast; print(fast())"
    printed = subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, "GENPOOL_FAST": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.strip() == "False"


def test_two_pieces_of_work_leave_the_threads_as_they_were():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        both = run_both(lambda side: (side, torch.is_grad_enabled()), torch.device("cpu"))
        assert both == ((0, False), (1, False))
        with pytest.raises(ZeroDivisionError):
            run_both(lambda side: 1 // (1 - side), torch.device("cpu"))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)

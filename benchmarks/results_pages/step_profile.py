"""Where the time of a training step goes, beside what sgemm would need for the same part.

    python -m benchmarks.results_pages.step_profile

Writes results/step_profile.md.
"""

from __future__ import annotations

import time
from collections import defaultdict

import torch
from torch.nn import functional

from benchmarks.pages import markdown_table, versions_line, write_page
from benchmarks.speed.harness import sgemm_work
from benchmarks.speed.paper_parts import bilstm_layers, generalized_pooling
from benchmarks.speed.sizes import MULTINLI, REVIEWS, SNLI, Size, make_batch, make_model
from genpool.model import Classifier
from genpool.tensors.packing import Packing

ROUNDS = 4


def forward_operations(model: Classifier, rows: int) -> dict[str, float]:
    """Returns the operations of the forward pass of each part, over the real tokens."""
    pooling = generalized_pooling(model.encoder)
    directions = [
        direction
        for layer in bilstm_layers(model.encoder)
        for direction in (layer.forwards, layer.backwards)
    ]
    return {
        "LSTM, inputs": 2.0 * rows * sum(direction.w.numel() for direction in directions),
        "LSTM, steps": 2.0 * rows * sum(direction.u.numel() for direction in directions),
        "pooling": 2.0 * rows * (pooling.w1.numel() + pooling.w2.numel()),
    }


def profile(size: Size) -> tuple[dict[str, float], dict[str, float], int, int]:
    """Returns milliseconds of each part, ideal milliseconds, tokens and steps of a batch."""
    model = make_model(size).train()
    batch = make_batch(model, size)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-4, fused=True)
    labels = torch.zeros(size.examples, dtype=torch.long)
    seconds: dict[str, float] = defaultdict(float)
    encoder = model.encoder
    packing = Packing.from_mask(batch.mask)
    for turn in range(ROUNDS + 1):
        if turn == 1:
            seconds.clear()  # the first one only warms up
        clock = _Clock(seconds)
        rows = encoder.embedding.rows(batch, packing)
        clock("embedding, forward")
        states, gates = encoder.encoder.encode_rows(rows, packing, False)
        clock("LSTM, forward")
        pooled = encoder.pooling.pool_rows(states, packing, gates)
        clock("pooling, forward")
        logits = model.mlp(model.features(pooled.vector))
        loss = functional.cross_entropy(logits, labels)
        clock("classifier, forward")
        grad_states = torch.autograd.grad(loss, [states], retain_graph=True)[0]
        clock("pooling and classifier, backward")
        torch.autograd.backward([states], [grad_states])
        clock("LSTM and embedding, backward")
        torch.nn.utils.clip_grad_norm_(trained, 10.0)
        optimizer.step()
        optimizer.zero_grad()
        clock("clipping and Adam")
    rate = _sgemm_rate()
    needed = forward_operations(model, len(packing.index))
    lstm, pooling = needed["LSTM, inputs"] + needed["LSTM, steps"], needed["pooling"]
    ideal = {
        "LSTM, forward": lstm,
        "pooling, forward": pooling,
        "pooling and classifier, backward": 2 * pooling,
        "LSTM and embedding, backward": 2 * lstm,
    }
    return (
        {name: 1e3 * value / ROUNDS for name, value in seconds.items()},
        {name: 1e3 * value / rate for name, value in ideal.items()},
        len(packing.index),
        len(packing.sizes),
    )


class _Clock:
    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds, self.last = seconds, time.perf_counter()

    def __call__(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] += now - self.last
        self.last = now


def _sgemm_rate() -> float:
    multiply, operations = sgemm_work()
    multiply()
    began = time.perf_counter()
    for _ in range(20):
        multiply()
    return 20 * operations / (time.perf_counter() - began)


def profile_section(size: Size) -> list[str]:
    """The heading and the table of one configuration."""
    parts, ideal, tokens, steps = profile(size)
    rows = [[name, f"{value:.0f}", f"{ideal.get(name, 0.0):.0f}"] for name, value in parts.items()]
    total = ["all", f"{sum(parts.values()):.0f}", f"{sum(ideal.values()):.0f}"]
    return [
        f"## {size.name}: {tokens:,} tokens in {steps} steps, {tokens / steps:.0f} a step",
        markdown_table(["part", "ms", "sgemm alone"], [*rows, total]),
    ]


def main() -> None:
    parts = [
        "# Where the time of a training step goes",
        f"`python -m benchmarks.results_pages.step_profile`; {torch.get_num_threads()} threads, "
        f"seed 0; {versions_line()}.\nMilliseconds of one step, and beside them those that sgemm, "
        "measured in the same run, would need for the products of that part alone.",
    ]
    for size in (SNLI, MULTINLI, REVIEWS):
        parts += profile_section(size)
    write_page("step_profile", parts)


if __name__ == "__main__":
    main()

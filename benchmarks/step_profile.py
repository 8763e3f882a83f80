"""Where the time of a training step goes, beside what sgemm would need for the same part.

    python -m benchmarks.step_profile

Writes results/step_profile.md.
"""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import torch
from torch.nn import functional

from benchmarks.harness import sgemm_work
from benchmarks.sizes import MULTINLI, REVIEWS, SNLI, Size, make_batch, make_model
from genpool.model import Classifier
from genpool.tensors.packing import Packing
from genpool.training.tracking import versions

PAGE = Path(__file__).parents[1] / "results" / "step_profile.md"
ROUNDS = 4


def operations(model: Classifier, rows: int) -> dict[str, float]:
    """Operations of the forward pass of each part, over the real tokens."""
    encoder = model.encoder
    directions = [
        each for layer in encoder.encoder.layers for each in (layer.forwards, layer.backwards)
    ]
    return {
        "LSTM, inputs": 2.0 * rows * sum(each.w.numel() for each in directions),
        "LSTM, steps": 2.0 * rows * sum(each.u.numel() for each in directions),
        "pooling": 2.0 * rows * (encoder.pooling.w1.numel() + encoder.pooling.w2.numel()),
    }


def profile(size: Size) -> tuple[dict[str, float], dict[str, float], int, int]:
    """Milliseconds of each part, ideal milliseconds, tokens and steps of a batch."""
    model = make_model(size).train()
    batch = make_batch(model, size)
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-4, fused=True)
    labels = torch.zeros(size.examples, dtype=torch.long)
    seconds: dict[str, float] = defaultdict(float)
    encoder = model.encoder
    packing = Packing.from_mask(batch.mask)
    for number in range(ROUNDS + 1):
        if number == 1:
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
    needed = operations(model, len(packing.index))
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
    multiply, each = sgemm_work()
    multiply()
    began = time.perf_counter()
    for _ in range(20):
        multiply()
    return 20 * each / (time.perf_counter() - began)


def main() -> None:
    about = ", ".join(f"{name} {number}" for name, number in versions().items())
    lines = [
        "# Where the time of a training step goes",
        "",
        f"`python -m benchmarks.step_profile`; {torch.get_num_threads()} threads, seed 0; {about}.",
        "Milliseconds of one step, and beside them those that sgemm, measured in the same run, "
        "would need for the products of that part alone.",
        "",
    ]
    for size in (SNLI, MULTINLI, REVIEWS):
        parts, ideal, tokens, steps = profile(size)
        lines += [
            f"## {size.name}: {tokens:,} tokens in {steps} steps, {tokens / steps:.0f} a step",
            "",
            "| part | ms | sgemm alone |",
            "|---|---|---|",
        ]
        for name, value in parts.items():
            lines.append(f"| {name} | {value:.0f} | {ideal.get(name, 0.0):.0f} |")
        lines += [f"| all | {sum(parts.values()):.0f} | {sum(ideal.values()):.0f} |", ""]
    text = "\n".join(lines)
    print(text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

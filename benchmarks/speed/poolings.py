"""Time and memory of generalized pooling, padded and packed, beside mean pooling.

    python -m benchmarks.speed.poolings

All sides run in one process, interleaved, several rounds; ratios to mean pooling are what counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import torch

from genpool.pooling import POOLINGS, GeneralizedPooling, Pooling
from genpool.tensors.packing import Packing

BATCH, LONGEST, DIM, ROUNDS = 64, 40, 600, 7


def pool(pooling: Pooling, *inputs: torch.Tensor) -> torch.Tensor:
    vector: torch.Tensor = pooling(*inputs).vector
    return vector


def main() -> None:
    torch.manual_seed(0)
    lengths = torch.randint(5, LONGEST + 1, (BATCH,))
    mask = torch.arange(LONGEST) < lengths[:, None]  # (batch, time)
    states = torch.randn(BATCH, LONGEST, DIM)
    packing = Packing.from_mask(mask)
    rows = packing.pack(states)
    sides: dict[str, Callable[[], torch.Tensor]] = {}
    for name, cls in POOLINGS.items():
        pooling = cls(DIM)
        gates = (torch.rand(BATCH, LONGEST, 8),) if pooling.needs_gates else ()
        sides[name] = partial(pool, pooling, states, mask, *gates)
    generalized = GeneralizedPooling(DIM)
    sides["generalized, packed rows"] = lambda: generalized.pool_rows(rows, packing).vector
    states.requires_grad_()
    rows.requires_grad_()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            began = time.perf_counter()
            side().sum().backward()
            times[name].append(time.perf_counter() - began)
    print(f"forward and backward, batch {BATCH}, up to {LONGEST} tokens of {DIM}; 1 = mean pooling")
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    for name, seconds in sorted(medians.items(), key=lambda item: item[1]):
        print(f"{name:26} {seconds / medians['mean']:8.1f}")


if __name__ == "__main__":
    main()

"""Tasks as numbered sentences, and the token states of a Transformer, computed once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from genpool.disk.files import raw_lines

DATA = Path(os.environ.get("GENPOOL_DATA", "../shared/data"))


@dataclass(frozen=True)
class Split:
    """labels (examples,) and numbers of sentences (examples, 1 or 2)."""

    labels: Tensor
    sentences: Tensor


class States:
    """Token states of distinct sentences, in half precision, end to end."""

    def __init__(self, model: SentenceTransformer, sentences: list[str]) -> None:
        found = model.encode(sentences, output_value="token_embeddings", batch_size=64)
        self.lengths = torch.tensor([len(each) for each in found])
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.rows = torch.cat([each.half() for each in found])  # (tokens, width)

    def batch(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """States (batch, time, width) and mask (batch, time) of some sentences."""
        lengths = self.lengths[numbers]  # (batch,)
        steps = torch.arange(int(lengths.max()))  # (time,)
        mask = steps < lengths.unsqueeze(1)  # (batch, time)
        index = (self.starts[numbers].unsqueeze(1) + steps).where(mask, 0)  # (batch, time)
        return self.rows[index].float(), mask


def read_task(folder: str, sides: int) -> tuple[dict[str, Split], list[str]]:
    """The splits of a task, and its distinct sentences; TREC's dev is a tenth of train."""
    rows: dict[str, list[list[str]]] = {}
    for name in ("train", "dev", "test"):
        path = DATA / folder / f"{name}.tsv.xz"
        if path.is_file():
            lines = [each.data.decode().split("\t") for each in raw_lines(path)]
            rows[name] = lines[1:]
    if "dev" not in rows:
        order = np.random.default_rng(0).permutation(len(rows["train"]))
        held = set(order[: len(order) // 10].tolist())
        whole = rows["train"]
        rows["dev"] = [row for number, row in enumerate(whole) if number in held]
        rows["train"] = [row for number, row in enumerate(whole) if number not in held]
    labels = sorted({row[0] for row in rows["train"]})
    places: dict[str, int] = {}
    splits = {}
    for name, some in rows.items():
        numbers = [
            [places.setdefault(text, len(places)) for text in row[1 : 1 + sides]] for row in some
        ]
        answers = [labels.index(row[0]) for row in some]
        splits[name] = Split(torch.tensor(answers), torch.tensor(numbers))
    return splits, list(places)

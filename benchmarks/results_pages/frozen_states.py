"""Tasks as numbered sentences, and the token states of a Transformer, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from benchmarks.data import data_path, has_data
from genpool.disk.files import raw_lines


@dataclass(frozen=True)
class Split:
    """labels (examples,) and ids of sentences (examples, 1 or 2)."""

    labels: Tensor
    sentences: Tensor


class States:
    """Token states of distinct sentences, in half precision, end to end."""

    def __init__(self, model: SentenceTransformer, sentences: list[str]) -> None:
        states = model.encode(sentences, output_value="token_embeddings", batch_size=64)
        self.lengths = torch.tensor([len(tokens) for tokens in states])
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.rows = torch.cat([tokens.half() for tokens in states])  # (tokens, dim)

    def batch(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns states (batch, time, dim) and mask (batch, time) of sentences."""
        lengths = self.lengths[ids]  # (batch,)
        steps = torch.arange(int(lengths.max()))  # (time,)
        mask = steps < lengths.unsqueeze(1)  # (batch, time)
        index = (self.starts[ids].unsqueeze(1) + steps).where(mask, 0)  # (batch, time)
        return self.rows[index].float(), mask


def read_task(folder: str, sides: int) -> tuple[dict[str, Split], list[str]]:
    """Returns the splits of a task, and its sentences; TREC's dev is a tenth of train."""
    rows: dict[str, list[list[str]]] = {}
    for name in ("train", "dev", "test"):
        file = f"{folder}/{name}.tsv.xz"
        if name != "dev" or has_data(file):
            lines = [line.data.decode().split("\t") for line in raw_lines(data_path(file))]
            rows[name] = lines[1:]
    if "dev" not in rows:
        order = np.random.default_rng(0).permutation(len(rows["train"]))
        held_out = set(order[: len(order) // 10].tolist())
        all_rows = rows["train"]
        rows["dev"] = [row for place, row in enumerate(all_rows) if place in held_out]
        rows["train"] = [row for place, row in enumerate(all_rows) if place not in held_out]
    labels = sorted({row[0] for row in rows["train"]})
    sentence_ids: dict[str, int] = {}
    splits = {}
    for name, split_rows in rows.items():
        ids = [
            [sentence_ids.setdefault(text, len(sentence_ids)) for text in row[1 : 1 + sides]]
            for row in split_rows
        ]
        answers = [labels.index(row[0]) for row in split_rows]
        splits[name] = Split(torch.tensor(answers), torch.tensor(ids))
    return splits, list(sentence_ids)

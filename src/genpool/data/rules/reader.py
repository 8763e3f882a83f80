"""The corpus that this package generates by rules, as a data set with three splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from genpool.data.base import Reader
from genpool.data.example import Example
from genpool.data.rows import Record
from genpool.data.rules.generate import LABELS, generate
from genpool.errors import ConfigError

SPLITS = ("train", "dev", "test")


class RulesReader(Reader):
    """Pairs of sentences made by rules: nothing is read, so no path is needed.

    sizes are those of train, dev and test; each split has a seed of its own: seed, seed + 1, ...
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        sizes: Sequence[int] = (10_000, 1_000, 1_000),
        seed: int = 0,
        bad_rows: str = "error",
    ) -> None:
        super().__init__(bad_rows=bad_rows)
        if len(sizes) != len(SPLITS) or min(sizes) < 1:
            raise ConfigError(f"sizes is {list(sizes)}; expected three numbers of 1 or more")
        self._sizes, self._seed = tuple(sizes), seed

    @property
    def labels(self) -> tuple[str, ...]:
        return LABELS

    @property
    def is_pair(self) -> bool:
        return True

    def splits(self) -> list[str]:
        return list(SPLITS)

    def _records(self, split: str) -> Iterator[Record]:
        place = SPLITS.index(split)
        pairs = generate(self._sizes[place], self._seed + place)
        for line, pair in enumerate(pairs, start=1):
            yield Record(Path("rules"), line, pair._asdict())

    def _example(self, values: Mapping[str, object], split: str) -> Example:
        label, premise, hypothesis = (
            str(values[key]) for key in ("label", "premise", "hypothesis")
        )
        return Example(label, premise, hypothesis, genre=str(values["rule"]))

"""The corpus that this package generates by rules, as a data set with three splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from genpool.data.reader import Example, Reader, require_choice
from genpool.data.rows import Record
from genpool.data.rules.cases import LABELS
from genpool.data.rules.generate import RULE_SETS, generate
from genpool.errors import ConfigError

SPLITS = ("train", "dev", "test")


class RulesReader(Reader):
    """Generates pairs of sentences by rules: nothing is read, so no path is needed.

    Args:
        path: ignored. Default None.
        sizes: pairs of train, dev and test, each 1 or more. Default (10000, 1000, 1000).
        seed: the seed of train; dev has seed + 1 and test seed + 2. Default 0.
        rules: "core" (default) or "wide", which has more rules and more words.
        bad_rows: as every reader has it; generated rows are never bad.

    Raises:
        ConfigError: `sizes` are not three such numbers, or there is no such set of rules.

    Example:
        >>> next(RulesReader(sizes=(100, 10, 10)).read("dev")).label
        'neutral'
    """

    labels = LABELS
    is_pair = True
    needs_path: ClassVar[bool] = False

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        sizes: Sequence[int] = (10_000, 1_000, 1_000),
        seed: int = 0,
        rules: str = "core",
        bad_rows: str = "error",
    ) -> None:
        super().__init__(bad_rows=bad_rows)
        if len(sizes) != len(SPLITS) or min(sizes) < 1:
            raise ConfigError(
                f"sizes is {list(sizes)}; expected three numbers of 1 or more "
                "(command line: --set 'reader.sizes=[10000, 1000, 1000]')"
            )
        self._sizes, self._seed = tuple(sizes), seed
        self._rules = require_choice("rules", rules, RULE_SETS)

    def splits(self) -> list[str]:
        """Returns train, dev and test."""
        return list(SPLITS)

    def records(self, split: str) -> Iterator[Record]:
        index = SPLITS.index(split)
        pairs = generate(self._sizes[index], self._seed + index, self._rules)
        for line, pair in enumerate(pairs, start=1):
            yield Record(Path("rules"), line, pair._asdict())

    def example(self, values: Mapping[str, object], split: str) -> Example:
        label, premise, hypothesis = (
            str(values[key]) for key in ("label", "premise", "hypothesis")
        )
        return Example(label, premise, hypothesis, genre=str(values["rule"]))

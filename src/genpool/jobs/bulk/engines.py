"""What runs shards: an engine takes them one by one and returns their results in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from genpool.errors import DataError, GenpoolError
from genpool.jobs.bulk.options import ShardSettings
from genpool.jobs.bulk.plan import Shard
from genpool.jobs.bulk.shard import ShardResult, UnreadableInput, UnusableRow, encode_shard
from genpool.model import SentenceEncoder

#: times that a worker may die over the same shard
MAX_DEATHS = 5


@dataclass(frozen=True)
class UnreadShard:
    """A shard whose rows could not be read."""

    shard: Shard
    problem: str


Outcome = ShardResult | UnreadShard


class Engine(Protocol):
    """Encodes shards."""

    def __call__(
        self, encoder: SentenceEncoder, settings: ShardSettings, shards: Iterable[Shard]
    ) -> Iterator[Outcome]:
        """Yields the outcome of every shard.

        Raises:
            GenpoolError: a shard cannot be encoded or written.
        """


def try_shard(encoder: SentenceEncoder, shard: Shard, settings: ShardSettings) -> Outcome:
    """Encodes a shard; a file that cannot be read is a result, not an error."""
    try:
        return encode_shard(encoder, shard, settings)
    except UnreadableInput as error:
        return UnreadShard(shard, str(error))
    except UnusableRow:
        raise
    except DataError as error:  # the shard cannot be written
        problem = f"{error.problem}; finished shards stay valid: make room, then run it again"
        raise DataError(problem, error.path) from error


class Deaths:
    """Counts the workers that died over each shard; too many over one are an error."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """How many workers have died."""
        return self._counts.total()

    def add(self, shard: Shard) -> None:
        """Counts one; raises GenpoolError if the shard seems to be the reason."""
        self._counts[shard.name] += 1
        if self._counts[shard.name] >= MAX_DEATHS:
            raise GenpoolError(too_many_deaths(shard))


def too_many_deaths(shard: Shard) -> str:
    """Returns the message for a shard over which MAX_DEATHS workers have died."""
    first = shard.start.row + 1
    return (
        f"{MAX_DEATHS} worker processes died over {shard.name} ({shard.path}, rows {first:,} to "
        f"{first + shard.rows - 1:,}): killed, or out of memory? Finished shards are kept; try "
        "fewer workers or a smaller --batch-size, and run the command again."
    )

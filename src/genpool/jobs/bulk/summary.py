"""What a bulk run did, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from genpool.jobs.bulk.shard import ShardResult


@dataclass
class BulkSummary:
    """What a folder of shards contains, and what this run added.

    Attributes:
        shards: finished shards.
        rows: rows in them.
        tokens: tokens that were encoded.
        cut_sentences: sentences that were longer than the maximum length of the model.
        cut_tokens: the tokens that were left out of them.
        skipped: rows that were left out, by reason.
        bytes: the size of the shards.
        earlier_rows: rows that earlier runs had encoded.
        bad_files: input files that could not be read, or only in part, and why.
        unread_rows: rows of these files that are known to be missing.
        seconds: that this run took.
    """

    shards: int = 0
    rows: int = 0
    tokens: int = 0
    cut_sentences: int = 0
    cut_tokens: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    earlier_rows: int = 0
    bad_files: dict[str, str] = field(default_factory=dict)
    unread_rows: int = 0
    seconds: float = 0.0

    def add(self, results: Iterable[ShardResult]) -> None:
        """Adds finished shards."""
        for result in results:
            self.shards += 1
            self.rows += result.rows
            self.tokens += result.tokens
            self.cut_sentences += result.cut_sentences
            self.cut_tokens += result.cut_tokens
            self.skipped.update(result.skipped)
            self.bytes += result.bytes

    def lines(self) -> list[str]:
        """Returns the summary for people."""
        new = self.rows - self.earlier_rows
        rate = f" ({new / self.seconds:,.0f} rows/s)" if new and self.seconds > 0 else ""
        lines = [
            f"{self.rows:,} rows ({self.earlier_rows:,} of them by earlier runs), "
            f"{self.tokens:,} tokens, in {self.shards:,} shards of {self.bytes:,} bytes together; "
            f"{self.seconds:,.1f} s{rate}",
            f"cut at the maximum length: {self.cut_sentences:,} sentences by "
            f"{self.cut_tokens:,} tokens",
        ]
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.items())
        lines.append(f"rows left out: {reasons or 0}")
        lines.append(f"input files that could not be read: {len(self.bad_files):,}")
        lines += [f"  {problem}" for problem in self.bad_files.values()]
        if self.unread_rows:
            lines.append(f"  rows of them that are missing, as far as known: {self.unread_rows:,}")
        return lines

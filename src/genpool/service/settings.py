"""The limits of a service, and how it collects requests into batches."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from genpool.errors import ConfigError


@dataclass(frozen=True)
class ServiceSettings:
    """What a service accepts, and when it encodes.

    Args:
        api_key: requests must have the header `Authorization: Bearer KEY`. Default: None, no key.
        max_sentences: sentences of one request. Default: 2,048, as OpenAI's.
        max_characters: characters of one sentence. Default: 20,000.
        max_explain_characters: characters of one sentence to explain. Default: 2,000.
        max_cosines: pairs of sentences in one request for similarities. Default: 65,536.
        max_body_bytes: size of a request. Default: 4 MiB.
        max_buffered_bytes: size of all requests that are being read or answered; beyond it
            requests get the status 503. Default: 64 MiB.
        max_queued_sentences: sentences that wait for their turn; beyond it requests get the status
            503. Default: 8,192.
        batch_sentences: sentences that are encoded together. Default: 256.
        window_seconds: how long a request waits for others to be encoded with. Default: 0.002.
        body_timeout_seconds: how long a client may take to send a request. Default: 30.

    Raises:
        ConfigError: one or several values are not possible.

    Example:
        >>> settings = ServiceSettings(api_key="secret", max_sentences=100)
    """

    api_key: str | None = field(default=None, repr=False)
    max_sentences: int = 2048
    max_characters: int = 20_000
    max_explain_characters: int = 2000
    max_cosines: int = 65_536
    max_body_bytes: int = 4 << 20
    max_buffered_bytes: int = 64 << 20
    max_queued_sentences: int = 8192
    batch_sentences: int = 256
    window_seconds: float = 0.002
    body_timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        problems = []
        if self.api_key is not None and (not self.api_key or not self.api_key.isascii()):
            problems.append(
                "api_key is empty or not ASCII; expected a key such as `openssl rand -hex 16`."
            )
        for setting in fields(self)[1:]:
            value = getattr(self, setting.name)
            lowest = 0 if setting.name.endswith("_seconds") else 1
            if value < lowest:
                problems.append(f"{setting.name} is {value}; expected {lowest} or more.")
        if self.max_buffered_bytes < self.max_body_bytes:
            problems.append(
                "max_buffered_bytes is smaller than max_body_bytes; one request must fit."
            )
        if problems:
            raise ConfigError(problems)

"""The operations that a place needs of an object store. Libraries speak the protocol: `s3.py`, `arrow.py`."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

PART_BYTES = 1 << 23
"""What is sent or fetched by one request."""
REQUESTS = 16
"""That are on their way at once."""


class DeniedError(OSError):
    """The store refuses."""


class FailedError(OSError):
    """The store failed, after as many attempts as the client makes."""


class Bucket(ABC):
    """Objects of one bucket by their keys. All methods raise `DeniedError`, `FailedError`, or FileNotFoundError."""

    @abstractmethod
    def below(self, prefix: str) -> dict[str, int]:
        """Return the keys below a prefix, which ends where a name does, with their bytes."""

    @abstractmethod
    def about(self, key: str) -> tuple[int, int] | None:
        """Return bytes and time of modification (ns) of an object; None where there is none."""

    @abstractmethod
    def read(self, key: str, first: int, count: int) -> memoryview:
        """Return a range; less where the object ends."""

    def ranges(self, key: str, first: Sequence[int], count: Sequence[int]) -> list[memoryview]:
        """Return several ranges, by concurrent requests."""
        if len(first) == 1:
            return [self.read(key, first[0], count[0])]
        with ThreadPoolExecutor(REQUESTS) as pool:
            return list(pool.map(lambda at, size: self.read(key, at, size), first, count))

    @abstractmethod
    def put(self, key: str, blocks: Iterator[bytes], size: int) -> bool:
        """Make an object of blocks of `PART_BYTES`, the last one shorter.

        Returns:
            Whether the store has said that it got what was sent.
        """

    @abstractmethod
    def create(self, key: str, data: bytes) -> bool:
        """Make an object unless there is one; whether it was made."""

    @abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Have the store copy an object."""

    @abstractmethod
    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects, whether they are there or not."""


def reason(error: BaseException) -> str:
    """Return the first line of a client's message, without request ids and possible secrets."""
    said = str(error).strip()
    text = (said or type(error).__name__).splitlines()[0]
    text = re.sub(r"\s*\(Request ID: [^)]*\)|\s*error_info=.*", "", text)
    if performed := re.search(
        r"Error performing (\w+) \S+ in .*? - (?:Server returned non-2xx status code: )?(.*)", text
    ):
        code = re.search("<Code>([^<]+)</Code>", said)
        text = f"{performed[1]}: {performed[2].partition(': <?xml')[0].partition(':<')[0].rstrip(': ')}"
        text += f", {code[1]}" if code else ""
    text = text.rstrip(". ")
    for variable in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"):
        if len(value := os.environ.get(variable, "")) >= 4:
            text = text.replace(value, "…")
    return text

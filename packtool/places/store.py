"""Datasets in object stores.

Arrays are read by ranges: only the items requested are fetched, and no copy is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.errors import DataError, PacktoolError
from packtool.places.bucket import PART_BYTES, DeniedError, FailedError, HubBucket, ObjectBucket, StoreBucket
from packtool.places.npy import HEADER_BYTES, FileEntry, header_problem
from packtool.places.place import AGAIN, I64, LARGEST_JSON, Array, Entry, Place
from packtool.places.url import KNOWN, LIKE_S3

GAP_BYTES = 1 << 18
"""A gap of up to this size between two ranges is read with them: a connection carries about as much while another
request would be under way."""
AHEAD = 4
"""Parts of one object fetched at once."""
ATTEMPTS = 3
"""Attempts at an upload. The library also retries every single request, after delays that double."""

Result = TypeVar("Result")


class StorePlace(Place):
    """A prefix of a bucket, by its URL, such as ``s3://bucket/name``."""

    arrays: int | None = 12
    late = True

    def __init__(self, url: str) -> None:
        self.url = url
        self._scheme, _, rest = url.partition("://")
        self._name, _, self._prefix = rest.partition("/")
        settings = (item for item in os.environ.items() if item[0].startswith(("AWS_", "GOOGLE_", "HF_")))
        self._settings = frozenset(settings)

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return StorePlace, (self.url,)

    def where(self, name: str = "") -> str:
        if not name:
            return self.url
        return f"{self.url}/{name}"

    def below(self, name: str) -> StorePlace:
        return StorePlace(self.where(name)) if name else self

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    def absent(self) -> DataError | None:
        if self.names():
            return None
        return DataError("missing-input", "no such object or directory", remedy="check the URL", where=self.url)

    def names(self) -> dict[str, int]:
        start = len(self._prefix) + 1 if self._prefix else 0
        objects = self._ask(lambda bucket: bucket.below(self._prefix))
        return {key[start:]: size for key, size in sorted(objects.items())}

    def size(self, name: str) -> int | None:
        about = self.modified(name)
        return None if about is None else about[0]

    def stamp(self, name: str) -> object:
        return self._ask(lambda bucket: bucket.version(self._key(name)), name)

    def read(self, name: str, largest: int = LARGEST_JSON) -> bytes:
        size, first = self._ask(lambda bucket: bucket.begin(self._key(name), PART_BYTES), name)
        self.require_small(name, size, largest)
        return b"".join((first, *self._blocks(name, len(first), size)))

    def blocks(self, name: str) -> Iterator[bytes]:
        size, first = self._ask(lambda bucket: bucket.begin(self._key(name), PART_BYTES), name)
        return chain((first,), self._blocks(name, len(first), size))

    def _blocks(self, name: str, first: int, size: int) -> Iterator[bytes]:
        for begin in range(first, size, AHEAD * PART_BYTES):
            end = min(size, begin + AHEAD * PART_BYTES)
            at = np.arange(begin, end, PART_BYTES)
            for part in self.ranges(name, at, np.minimum(PART_BYTES, end - at)):
                yield bytes(part)

    def array(self, entry: FileEntry, dtype: np.dtype[Any] | str) -> Array:
        """Return an array that is read by ranges when its items are needed, a `RangedArray`."""
        wanted = np.dtype(dtype)
        try:
            size, header = self._ask(lambda bucket: bucket.begin(self._key(entry.name), HEADER_BYTES), entry.name)
        except FileNotFoundError:
            raise self.missing(entry.name) from None
        problem = header_problem(header, size, wanted, entry.shape)
        if problem:
            raise self.damaged(entry.name, problem)
        return cast("Array", RangedArray(self, entry.name, wanted, entry.shape))

    def ranges(self, name: str, first: I64, count: I64) -> list[memoryview]:
        if not len(first):
            return []
        begin, size, request = spans(first, count)
        try:
            got = self._ask(lambda bucket: bucket.ranges(self._key(name), begin.tolist(), size.tolist()), name)
        except FileNotFoundError:
            what = "was deleted from the store during the run"
            raise DataError("missing-shard", what, remedy=AGAIN, where=self.where(name)) from None
        if any(len(part) != n for part, n in zip(got, size.tolist(), strict=True)):
            raise self.damaged(name, "is shorter than it was")
        at = (first - begin[request]).tolist()
        return [got[n][a : a + c] for n, a, c in zip(request.tolist(), at, count.tolist(), strict=True)]

    def write(self, name: str, data: bytes) -> None:
        self._send(name, lambda: iter([data]), len(data), xxhash.xxh3_128_hexdigest(data))

    def create(self, name: str, data: bytes, replaces: bytes | None = None) -> bool:
        key = self._key(name)
        try:
            is_new = self._tried(lambda: self._ask(lambda bucket: bucket.create(key, data, replaces), name))
            there = self.read(name)
        except FileNotFoundError:
            return False  # its owner has removed it
        if is_new and there != data:
            self.write(name, data)  # changed on its way
        # A request whose answer was lost is sent again, and then refused, since its file is there: by its contents, of
        # which every caller has its own, it is ours all the same. Of two callers only one finds its contents there.
        return is_new or there == data

    def put(self, name: str, file: Path, xxh3_128: str, *, durable: bool = True) -> None:
        del durable
        size = file.stat().st_size

        def blocks() -> Iterator[bytes]:
            """Yield the contents of the file; check its checksum before the last block."""
            hashed, last = xxhash.xxh3_128(), b""
            with file.open("rb") as source:
                while block := source.read(PART_BYTES):
                    hashed.update(block)
                    if last:
                        yield last
                    last = block
            if hashed.hexdigest() != xxh3_128:
                what = "its checksum differs from when it was written: the file has changed on the disk"
                remedy = "check the disk, then run the command again"
                raise DataError("wrong-checksum", what, remedy=remedy, where=self.where(name))
            yield last

        self._send(name, blocks, size, xxh3_128)
        file.unlink()

    def _send(self, name: str, blocks: Callable[[], Iterator[bytes]], size: int, xxh3_128: str) -> None:
        """Upload blocks, with retries, and read them back where the store does not confirm their checksum."""

        def send() -> None:
            is_confirmed = self._ask(lambda bucket: bucket.put(self._key(name), blocks(), size), name)
            if not is_confirmed and (self.size(name) != size or self.digest(name) != xxh3_128):
                what = "differs in the store from what was sent"
                remedy = "check the network, then run the command again"
                raise DataError("store-unreachable", what, remedy=remedy, where=self.where(name))

        self._tried(send)

    def _tried(self, call: Callable[[], Result]) -> Result:
        """Call something that may safely be done twice, some more times if the store fails."""
        for _ in range(ATTEMPTS - 1):
            try:
                return call()
            except DataError as error:
                if error.code != "store-unreachable":
                    raise
        return call()

    def remove(self, names: Iterable[str]) -> None:
        keys = list(map(self._key, names))
        if keys:
            self._tried(lambda: self._ask(lambda bucket: bucket.remove(keys)))

    def require(self, entries: Sequence[Entry]) -> None:
        there = self.names()
        for entry in entries:
            self.require_size(entry, there.get(entry.name))

    def modified(self, name: str) -> tuple[int, int] | None:
        """Return the bytes and time of modification (ns) of a file; None if there is no such file."""
        return self._ask(lambda bucket: bucket.about(self._key(name)), name)

    def _ask(self, request: Callable[[ObjectBucket], Result], name: str = "") -> Result:
        """Make a request, and let errors say where; FileNotFoundError passes."""
        if _first_process() != os.getpid():
            what = "clients of object stores do not survive a fork, and this process was forked from one that used them"
            remedy = "spawn processes instead, such as with multiprocessing_context='spawn'"
            raise DataError("forked-process", what, remedy=remedy, where=self.where(name))
        try:
            return request(_bucket(self._scheme, self._name, self._settings))
        except DeniedError as error:
            what = f"the store refuses access ({error})"
            remedy = "check the credentials in the environment or the AWS files, and what they may do"
            raise DataError("store-denied", what, remedy=remedy, where=self.where(name)) from None
        except FailedError as error:
            what = f"the store failed ({error})"
            remedy = "check the URL, the endpoint and the network, then run the command again"
            raise DataError("store-unreachable", what, remedy=remedy, where=self.where(name)) from None


class RangedArray:
    """The part of NumPy's arrays that readers use: length, slices and items of the first axis, and another shape.

    Slices and items are copies, and cost requests: request many at once.
    """

    def __init__(self, place: Place, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._place = place
        self._name = name
        self.dtype = dtype
        self.shape = shape
        self._width = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step == 1:
                last = max(first, last)
                begin, end = HEADER_BYTES + first * self._width, HEADER_BYTES + last * self._width
                at = np.arange(begin, end, PART_BYTES)
                parts = self._place.ranges(self._name, at, np.minimum(PART_BYTES, end - at))
                values = np.frombuffer(b"".join(parts), np.uint8)
                return values.view(self.dtype).reshape(last - first, *self.shape[1:])
            index = np.arange(first, last, step)
        return self.take(index)

    def take(self, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> Any:
        """Return items of the first axis, by their numbers from 0, as `numpy.take` does."""
        del axis, out, mode
        numbers = np.asarray(indices, np.int64)
        wrong = np.flatnonzero((numbers < 0) | (numbers >= len(self)))
        if len(wrong):
            raise IndexError(f"item {numbers.reshape(-1)[wrong[0]]} of {len(self)}")
        if not self._width or not numbers.size:
            return np.empty((*numbers.shape, *self.shape[1:]), self.dtype)
        wanted, where = np.unique(numbers.reshape(-1), return_inverse=True)
        parts = self._place.ranges(
            self._name, HEADER_BYTES + wanted * self._width, np.full(len(wanted), self._width, np.int64)
        )
        values = np.frombuffer(b"".join(parts), np.uint8).reshape(len(wanted), self._width)[where.reshape(-1)]
        return values.view(self.dtype).reshape(*numbers.shape, *self.shape[1:])

    def slices(self, first: I64, count: I64) -> npt.NDArray[Any]:
        """Return slices of the first axis, joined; they must not reach beyond its end."""
        order = np.argsort(first, kind="stable")  # ranges are asked for in ascending order, and come back in it
        begins, sizes = HEADER_BYTES + first[order] * self._width, count[order] * self._width
        parts: list[memoryview | bytes] = [b""] * len(order)
        for number, part in zip(order.tolist(), self._place.ranges(self._name, begins, sizes), strict=True):
            parts[number] = part
        return np.frombuffer(b"".join(parts), self.dtype)

    def reshape(self, *shape: int) -> RangedArray:
        """Group the same items in another way; -1 stands for the length that follows."""
        full = list(shape)
        if -1 in shape:
            product = -int(np.prod(shape, dtype=np.int64))
            total = int(np.prod(self.shape, dtype=np.int64))
            full[shape.index(-1)] = total // product if product else 0
        return RangedArray(self._place, self._name, self.dtype, tuple(full))


def spans(first: I64, count: I64) -> tuple[I64, I64, I64]:
    """Join neighbouring ranges to requests: with what lies between them, and about `PART_BYTES` at most.

    Parts of `PART_BYTES` are counted from the first range on. The ranges that end in one part make one request, so it
    may be longer than a part by the range with which it begins.

    Args:
        first, count: the first byte and the number of bytes of each range, ascending by the first byte.

    Returns:
        First byte and number of bytes of each request: (requests). The number of the request of each range: (ranges).

    >>> spans(np.array([0, 10, 1 << 20]), np.array([10, 5, 1]))
    (array([      0, 1048576]), array([15,  1]), array([0, 0, 1]))
    """
    end = first + count
    read_to = np.maximum.accumulate(end)  # a range may end inside the one before it
    far = first[1:] - read_to[:-1] > GAP_BYTES
    part = (end - first[0]) // PART_BYTES
    begins_request = np.ones(len(first), np.bool_)
    begins_request[1:] = far | (part[1:] != part[:-1])
    request = np.cumsum(begins_request) - 1
    heads = np.flatnonzero(begins_request)
    begin = first[heads]
    stop = np.maximum.reduceat(end, heads)
    return begin, stop - begin, request


@lru_cache(64)
def _bucket(scheme: str, name: str, settings: frozenset[tuple[str, str]]) -> ObjectBucket:
    """Make the client of a bucket, which costs connections: the places of a process share it.

    Args:
        settings: where to connect, and as whom; other settings get another client.
    """
    del settings
    try:
        return HubBucket(name) if scheme == "hf" else StoreBucket(f"{scheme}://{name}")
    except PacktoolError:
        raise
    except Exception as error:
        if scheme not in KNOWN:
            raise _unknown(scheme, name) from None
        text = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(". ")
        what = f"can't open this object store ({text})"
        remedy = "check the URL, the credentials and the network"
        raise DataError("no-such-store", what, remedy=remedy, where=f"{scheme}://{name}") from None


def _unknown(scheme: str, name: str) -> DataError:
    """Return the error for a URL of a store that is not known."""
    remedy = "copy its files to one of them, or to this machine, first"
    if scheme in ("gcs", "gsutil"):
        remedy = f"write gs://{name}"
    elif scheme in LIKE_S3:
        remedy = "write s3://, with the address of its S3 endpoint in AWS_ENDPOINT_URL"
    what = f"no store is known by {scheme}://; there are {'://, '.join(KNOWN[:5])}://"
    return DataError("no-such-store", what, remedy=remedy, where=f"{scheme}://{name}")


@cache
def _first_process() -> int:
    """Return the process that was the first to use a store: this one, or one that it was forked from."""
    return os.getpid()

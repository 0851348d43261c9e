"""Buckets of object stores, through `obstore`; and repositories of the Hugging Face Hub, which are only read.

Credentials, regions and endpoints come from the environment and the files of the stores' own tools, never from a URL.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

from packtool.errors import UsageError
from packtool.support.installing import how_to_install, needing

PART_BYTES = 1 << 23
"""Bytes that one request sends or fetches."""
REQUESTS = 16
"""Requests in flight at once."""
CONNECT_SECONDS = 10
REQUEST_SECONDS = 60
"""How long one request may take, with its data: a store that stops answering is given up after three."""
RETRY_SECONDS = 30
"""How long the library retries a request, after delays of 0.1 s at first and 15 s at most."""
RETRIES = 1000
"""More than fit in that time, so that the time alone ends them: ten take from 2 to 10 seconds, as chance has it."""


_REFUSALS = frozenset(
    {
        "AccessDenied",
        "AuthorizationQueryParametersError",
        "CredentialsExpired",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSecurityToken",
        "InvalidSignature",
        "InvalidToken",
        "InvalidTokenId",
        "MissingAuthenticationToken",
        "MissingSecurityHeader",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "UnrecognizedClientException",
    }
)
"""Codes of Amazon and of stores like it for credentials that do not do, some of which come with status 400."""


class DeniedError(OSError):
    """The store refuses."""


class FailedError(OSError):
    """The store failed, after as many attempts as the client makes."""


class ObjectBucket(ABC):
    """Objects of one bucket by their keys. All methods raise `DeniedError`, `FailedError`, or FileNotFoundError."""

    @abstractmethod
    def below(self, prefix: str) -> dict[str, int]:
        """Return the keys below a prefix, which ends where a name does, with their bytes."""

    @abstractmethod
    def about(self, key: str) -> tuple[int, int] | None:
        """Return the bytes and time of modification (ns) of an object; None if there is no such object."""

    def version(self, key: str) -> object:
        """Return a value that differs once an object was replaced; None if there is no such object."""
        return self.about(key)

    @abstractmethod
    def begin(self, key: str, count: int) -> tuple[int, bytes]:
        """Return the bytes of an object, and its first `count` of them, or all where it has fewer."""

    @abstractmethod
    def read(self, key: str, first: int, count: int) -> memoryview:
        """Return a range; less where the object ends."""

    def ranges(self, key: str, first: Sequence[int], count: Sequence[int]) -> list[memoryview]:
        """Return several ranges, by concurrent requests."""
        if len(first) == 1:
            return [self.read(key, first[0], count[0])]
        with ThreadPoolExecutor(REQUESTS) as pool:
            return list(pool.map(lambda at, size: self.read(key, at, size), first, count))

    def put(self, key: str, blocks: Iterator[bytes], size: int) -> bool:
        """Make an object of blocks of `PART_BYTES`, the last one shorter; return whether the store confirms them."""
        raise DeniedError("it is read-only")

    def create(self, key: str, data: bytes, replaces: bytes | None = None) -> bool:
        """Make an object unless there is one, or replace one that still holds `replaces`; return whether it did."""
        raise DeniedError("it is read-only")

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects, whether they are there or not."""
        raise DeniedError("it is read-only")


class StoreBucket(ObjectBucket):
    """A bucket of Amazon S3, Google's store, or another that `obstore` knows, by the URL of the bucket."""

    def __init__(self, url: str) -> None:
        with needing("an object store"):
            import obstore
            from obstore.store import from_url

        options: dict[str, Any] = {}
        if url.startswith("s3://"):
            options = {"checksum_algorithm": "crc64nvme", **profile()}
        self._obstore = obstore
        self._store: Any = from_url(
            url,
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                "timeout": timedelta(seconds=REQUEST_SECONDS),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            **options,
        )
        # Amazon itself refuses a body that differs from its checksum; of other stores, only some check.
        given = any(name.startswith("AWS_ENDPOINT") for name in os.environ)
        endpoint = options.get("endpoint", "" if given else "https://s3.amazonaws.com")
        self._checks = url.startswith("s3://") and ".amazonaws.com" in endpoint

    def below(self, prefix: str) -> dict[str, int]:
        with _obstore_errors():
            objects = chain.from_iterable(self._obstore.list(self._store, prefix))
            return {str(each["path"]): int(each["size"]) for each in objects}

    def about(self, key: str) -> tuple[int, int] | None:
        try:
            with _obstore_errors():
                about = self._obstore.head(self._store, key)
        except FileNotFoundError:
            return None
        except FailedError as error:
            if not str(error).startswith("400 "):
                raise
            # The answer to HEAD has no body, and so no error code. The answer to a read tells whether credentials are
            # at fault.
            with _obstore_errors():
                self._obstore.get(self._store, key, options={"range": (0, 1)})
            raise
        return int(about["size"]), int(about["last_modified"].timestamp() * 1e9)

    def version(self, key: str) -> object:
        try:
            with _obstore_errors():
                return self._obstore.head(self._store, key)["e_tag"]
        except FileNotFoundError:
            return None

    def begin(self, key: str, count: int) -> tuple[int, bytes]:
        try:
            with _obstore_errors():
                there = self._obstore.get(self._store, key, options={"range": (0, count)})
                return int(there.meta["size"]), bytes(there.bytes())
        except FailedError:  # an empty object has no range
            about = self.about(key)
            if about is None or about[0]:
                raise
            return 0, b""

    def read(self, key: str, first: int, count: int) -> memoryview:
        if not count:
            return memoryview(b"")
        with _obstore_errors():
            return memoryview(self._obstore.get_range(self._store, key, start=first, length=count))

    def put(self, key: str, blocks: Iterator[bytes], size: int) -> bool:
        digests: list[bytes] = []

        def hashed() -> Iterator[bytes]:
            for block in blocks:
                digests.append(hashlib.md5(block, usedforsecurity=False).digest())
                yield block

        with _obstore_errors():
            if size <= PART_BYTES:
                stored = self._obstore.put(self._store, key, b"".join(hashed()), use_multipart=False)
            else:
                stored = self._obstore.put(self._store, key, hashed(), chunk_size=PART_BYTES, max_concurrency=1)
        if size <= PART_BYTES:
            expected = b"".join(digests).hex()
        else:
            whole = hashlib.md5(b"".join(digests), usedforsecurity=False)
            expected = f"{whole.hexdigest()}-{len(digests)}"
        return self._checks or str(stored["e_tag"]).strip('"') == expected

    def create(self, key: str, data: bytes, replaces: bytes | None = None) -> bool:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "create"
        with _obstore_errors():
            if replaces is not None:
                there = self._obstore.get(self._store, key)
                if bytes(there.bytes()) != replaces:
                    return False
                tags = {name: there.meta.get(name) for name in ("e_tag", "version")}
                mode = {name: tag for name, tag in tags.items() if tag is not None}
            try:
                self._obstore.put(self._store, key, data, mode=mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def remove(self, keys: Sequence[str]) -> None:
        with _obstore_errors():
            try:
                self._obstore.delete(self._store, list(keys))
            except FileNotFoundError:  # Google's removes one by one, and stops at the first that is missing
                for key in keys:
                    with suppress(FileNotFoundError):
                        self._obstore.delete(self._store, key)


@contextmanager
def _obstore_errors() -> Iterator[None]:
    """Translate errors of the library to errors of a `ObjectBucket`."""
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(reason(error)) from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise DeniedError(reason(error)) from None
    except exceptions.BaseError as error:
        text = reason(error)
        raise (DeniedError if _denies(text) else FailedError)(text) from None


def _denies(text: str) -> bool:
    """Return whether a store refused a request, for which the library has an exception only in part of the cases.

    >>> _denies("403 Forbidden"), _denies("400 Bad Request, ExpiredToken"), _denies("400 Bad Request, BadDigest")
    (True, True, False)
    """
    return text.startswith(("401 ", "403 ")) or text.rpartition(", ")[2] in _REFUSALS


def reason(error: BaseException) -> str:
    """Return why a request failed: the last part of the library's first line, and the code in the store's answer.

    >>> reason(OSError("Error performing GET http://h/b/k in 1ms - HTTP error: error sending request\\nDebug source"))
    'HTTP error: error sending request'
    """
    whole = str(error) or type(error).__name__
    text = whole.splitlines()[0].partition(": <")[0].rpartition(" - ")[2]
    code = whole.partition("<Code>")[2].partition("</Code>")[0]
    text = text.removeprefix("Server returned non-2xx status code: ").rstrip(":. ")
    return f"{text}, {code}" if code else text


def profile() -> dict[str, Any]:
    """Return what boto3 finds in the AWS files, for `obstore`, which only reads the environment.

    They are used where a profile is named, or the environment has no keys.

    Raises:
        UsageError: they are needed, and boto3 is not installed.
    """
    named = {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"} & os.environ.keys()
    files = [
        os.environ.get("AWS_CONFIG_FILE", "~/.aws/config"),
        os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ]
    there = any(Path(file).expanduser().exists() for file in files)
    if not named and ("AWS_ACCESS_KEY_ID" in os.environ or not there):
        return {}
    try:
        from boto3 import Session
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        what = "AWS profiles are read by the package boto3"
        remedy = f"install it: {how_to_install('boto3')}; or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise UsageError("missing-extra", what, remedy=remedy, where="AWS_PROFILE" if named else "~/.aws") from None
    session = Session(region_name=os.environ.get("AWS_REGION"))
    options: dict[str, Any] = {"endpoint": session.client("s3").meta.endpoint_url}
    if session.get_credentials() is not None:
        options["credential_provider"] = Boto3CredentialProvider(session)
    return options


class HubBucket(ObjectBucket):
    """Repositories of the Hugging Face Hub, of one kind or owner: the first part of their paths."""

    def __init__(self, name: str) -> None:
        from huggingface_hub import HfFileSystem

        self._hub = HfFileSystem()
        self._name = name

    def below(self, prefix: str) -> dict[str, int]:
        try:
            with _hub_errors():
                found: Any = self._hub.find(f"{self._name}/{prefix}", detail=True)
        except FileNotFoundError:
            return {}
        return {path.removeprefix(f"{self._name}/"): int(each["size"]) for path, each in found.items()}

    def about(self, key: str) -> tuple[int, int] | None:
        try:
            with _hub_errors():
                about = self._hub.info(f"{self._name}/{key}")
        except FileNotFoundError:
            return None
        return (int(about["size"]), 0) if about["type"] == "file" else None

    def begin(self, key: str, count: int) -> tuple[int, bytes]:
        about = self.about(key)
        if about is None:
            raise FileNotFoundError(key)
        size = about[0]
        return size, bytes(self.read(key, 0, min(count, size))) if size else b""

    def read(self, key: str, first: int, count: int) -> memoryview:
        with _hub_errors():
            return memoryview(self._hub.cat_file(f"{self._name}/{key}", start=first, end=first + count))


@contextmanager
def _hub_errors() -> Iterator[None]:
    """Translate errors of the Hub's client, and of the libraries it calls, to errors of a `ObjectBucket`."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(". ")
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
        kinds = {401: DeniedError, 403: DeniedError, 404: FileNotFoundError}
        raise kinds.get(status, FailedError)(text) from None

"""Buckets of object stores: what a place needs of them, through the libraries that speak their protocols.

`obstore` serves Amazon S3 and compatible stores; `pyarrow.fs` serves Google's, the Hugging Face Hub and all others.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from packtool.errors import UsageError
from packtool.support.installing import how_to_install

PART_BYTES = 1 << 23
"""What is sent or fetched by one request."""
REQUESTS = 16
"""That are on their way at once."""
CONNECT_SECONDS = 10
REQUEST_SECONDS = 60
"""How long one request may take, with its data: a store that does not answer any more is given up after two."""
S3_RETRY_SECONDS = 30
"""How long the library tries a request again, after delays that double."""
RETRIES = 10
GOOGLE_RETRY_SECONDS = 15
"""How long the client of Google's store tries a request; without a limit, minutes."""
_DENIED = re.compile(
    "HTTP status 40[13]|PERMISSION_DENIED|UNAUTHENTICATED|create a OAuth2 access token|Client error '40[13]"
)


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
        """Make an object of blocks of `PART_BYTES`, the last one shorter; return whether the store confirms them."""

    @abstractmethod
    def create(self, key: str, data: bytes) -> bool:
        """Make an object unless there is one; whether it was made."""

    @abstractmethod
    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects, whether they are there or not."""


class S3Bucket(Bucket):
    """A bucket of S3. Credentials, region and endpoint come from the environment and the AWS files only."""

    def __init__(self, bucket: str) -> None:
        import obstore
        from obstore.store import S3Store

        endpoint, region = s3_location()
        options: dict[str, Any] = credentials()
        if endpoint:
            options["endpoint"] = endpoint if "://" in endpoint else f"https://{endpoint}"
        if region:
            options["region"] = region
        self._obstore = obstore
        # Amazon itself refuses a body that differs from its checksum; of other stores only some look.
        self._checks = endpoint is None
        self._store = S3Store(
            bucket,
            checksum_algorithm="crc64nvme",
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                "timeout": timedelta(seconds=REQUEST_SECONDS),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=S3_RETRY_SECONDS)},
            **options,
        )

    def below(self, prefix: str) -> dict[str, int]:
        with _obstore_errors():
            objects = [each for chunk in self._obstore.list(self._store, prefix) for each in chunk]
        return {str(each["path"]): int(each["size"]) for each in objects}

    def about(self, key: str) -> tuple[int, int] | None:
        try:
            with _obstore_errors():
                about = self._obstore.head(self._store, key)
        except FileNotFoundError:
            return None
        return int(about["size"]), int(about["last_modified"].timestamp() * 1e9)

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

    def create(self, key: str, data: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError

        with _obstore_errors():
            try:
                self._obstore.put(self._store, key, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def remove(self, keys: Sequence[str]) -> None:
        with _obstore_errors():
            self._obstore.delete(self._store, list(keys))


@contextmanager
def _obstore_errors() -> Iterator[None]:
    """Translate errors of the library to those of a `Bucket`."""
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(reason(error)) from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise DeniedError(reason(error)) from None
    except exceptions.AlreadyExistsError:
        raise
    except exceptions.BaseError as error:
        said = reason(error)
        denied = re.search(r": 40[13] ", said)  # where it lists, the library has no exception of its own for it
        raise (DeniedError if denied else FailedError)(said) from None


class ArrowBucket(Bucket):
    """One bucket of a store that `pyarrow.fs` reads, by its scheme, such as `gs`; or a repository of the Hub, `hf`."""

    def __init__(self, scheme: str, bucket: str) -> None:
        from pyarrow import fs

        self._bucket = bucket
        if scheme == "gs":
            self._store = fs.GcsFileSystem(retry_time_limit=timedelta(seconds=GOOGLE_RETRY_SECONDS))
        elif scheme == "s3":
            options: dict[str, Any] = {"background_writes": False}
            endpoint, region = s3_location()
            if region:
                options["region"] = region
            if endpoint:
                protocol, separator, host = endpoint.rpartition("://")
                options |= {"endpoint_override": host.rstrip("/"), "scheme": protocol if separator else "https"}
            self._store = fs.S3FileSystem(**options)
        elif scheme == "hf":
            from huggingface_hub import HfFileSystem

            self._store = fs.PyFileSystem(fs.FSSpecHandler(HfFileSystem()))
        else:
            self._store, root = fs.FileSystem.from_uri(f"{scheme}://{bucket}/")
            self._bucket = root.rstrip("/")

    def _path(self, key: str) -> str:
        return f"{self._bucket}/{key}" if key else self._bucket or "/"

    def below(self, prefix: str) -> dict[str, int]:
        from pyarrow import fs

        selector = fs.FileSelector(self._path(prefix), recursive=True, allow_not_found=True)
        with _arrow_errors():
            entries = self._store.get_file_info(selector)
        start = len(self._bucket) + 1
        return {each.path[start:]: int(each.size) for each in entries if each.type == fs.FileType.File}

    def about(self, key: str) -> tuple[int, int] | None:
        from pyarrow import fs

        with _arrow_errors():
            info = self._store.get_file_info(self._path(key))
        return (int(info.size), int(info.mtime_ns or 0)) if info.type == fs.FileType.File else None

    def read(self, key: str, first: int, count: int) -> memoryview:
        with _arrow_errors(), self._store.open_input_file(self._path(key)) as file:
            return memoryview(file.read_at(count, first))

    def ranges(self, key: str, first: Sequence[int], count: Sequence[int]) -> list[memoryview]:
        with (
            _arrow_errors(),
            self._store.open_input_file(self._path(key)) as file,
            ThreadPoolExecutor(REQUESTS) as pool,
        ):
            return [memoryview(each) for each in pool.map(file.read_at, count, first)]

    def put(self, key: str, blocks: Iterator[bytes], size: int) -> bool:
        del size
        with _arrow_errors():
            stream = self._store.open_output_stream(self._path(key), compression=None)
        try:
            for block in blocks:
                with _arrow_errors():
                    stream.write(block)
            with _arrow_errors():
                stream.close()
        except BaseException:
            # The client completes the upload of what was written so far when a stream goes, unless it never goes.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
            raise
        return False

    def create(self, key: str, data: bytes) -> bool:
        if self.about(key) is not None:
            return False
        self.put(key, iter([data]), len(data))
        return True

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                with _arrow_errors():
                    self._store.delete_file(self._path(key))
            except FileNotFoundError:
                continue


@contextmanager
def _arrow_errors() -> Iterator[None]:
    """Translate errors of the library, and of those behind it, to those of a `Bucket`."""
    try:
        yield
    except (FileNotFoundError, DeniedError, FailedError):
        raise
    except Exception as error:
        if _DENIED.search(str(error)):
            raise DeniedError(reason(error)) from None
        if type(error).__module__.partition(".")[0] in ("builtins", "pyarrow") and not isinstance(error, OSError):
            raise
        raise FailedError(reason(error)) from None


def s3_location() -> tuple[str | None, str | None]:
    """Return endpoint and region of the store that the environment and the AWS files name; None where they don't."""
    endpoint = setting("endpoint_url", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return endpoint, setting("region", "AWS_REGION", "AWS_DEFAULT_REGION")


def credentials() -> dict[str, Any]:
    """Return the settings that `obstore` does not find by itself: those of a profile in the AWS files."""
    if os.environ.get("AWS_ACCESS_KEY_ID") and not os.environ.get("AWS_PROFILE"):
        return {}
    names = ("access_key_id", "secret_access_key", "session_token")
    given = {name: value for name in names if (value := setting(f"aws_{name}"))}
    if "access_key_id" in given and "secret_access_key" in given:
        return given
    if any(map(setting, ("sso_session", "sso_start_url", "role_arn", "credential_process", "source_profile"))):
        try:
            from boto3 import Session  # type: ignore[import-not-found]
            from obstore.auth.boto3 import Boto3CredentialProvider
        except ImportError:
            raise UsageError(
                "missing-extra",
                "the AWS profile signs in, takes a role or runs a program, which the package boto3 does",
                remedy=f"install it: {how_to_install('boto3')}",
                where="AWS_PROFILE",
            ) from None
        return {"credential_provider": Boto3CredentialProvider(Session())}
    return {}


def setting(name: str, *variables: str) -> str | None:
    """Return a setting from the first environment variable that is set, else from the profile in the AWS files."""
    import configparser  # only object stores need it

    for variable in variables:
        if value := os.environ.get(variable):
            return value
    profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    folder = Path.home() / ".aws"
    files = {
        os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or folder / "credentials": profile,
        os.environ.get("AWS_CONFIG_FILE") or folder / "config": profile
        if profile == "default"
        else f"profile {profile}",
    }
    for file, section in files.items():
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # the store has the last word
        if value := parser.get(section, name, fallback=None):
            return value
    return None


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

"""Google's object store, the Hugging Face Hub, and whatever else `pyarrow.fs` reads."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from packtool.places.bucket import REQUESTS, Bucket, DeniedError, FailedError, reason
from packtool.places.s3 import setting

RETRY_SECONDS = 15
"""How long the client of Google's store tries a request; without a limit, minutes."""
_DENIED = re.compile(
    "HTTP status 40[13]|PERMISSION_DENIED|UNAUTHENTICATED|create a OAuth2 access token|Client error '40[13]"
)


class ArrowBucket(Bucket):
    """One bucket of Google's store, or a repository of the Hub.

    Args:
        scheme: such as `gs` or `hf`.
        bucket: what keys are relative to.
    """

    def __init__(self, scheme: str, bucket: str) -> None:
        from pyarrow import fs

        self._bucket = bucket
        if scheme == "gs":
            self._store = fs.GcsFileSystem(retry_time_limit=timedelta(seconds=RETRY_SECONDS))
        elif scheme == "s3":
            self._store = fs.S3FileSystem(**s3_options())
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
        with _translated():
            entries = self._store.get_file_info(selector)
        start = len(self._bucket) + 1
        return {each.path[start:]: int(each.size) for each in entries if each.type == fs.FileType.File}

    def about(self, key: str) -> tuple[int, int] | None:
        from pyarrow import fs

        with _translated():
            info = self._store.get_file_info(self._path(key))
        return (int(info.size), int(info.mtime_ns or 0)) if info.type == fs.FileType.File else None

    def read(self, key: str, first: int, count: int) -> memoryview:
        with _translated(), self._store.open_input_file(self._path(key)) as file:
            return memoryview(file.read_at(count, first))

    def ranges(self, key: str, first: Sequence[int], count: Sequence[int]) -> list[memoryview]:
        with _translated(), self._store.open_input_file(self._path(key)) as file, ThreadPoolExecutor(REQUESTS) as pool:
            return [memoryview(each) for each in pool.map(file.read_at, count, first)]

    def put(self, key: str, blocks: Iterator[bytes], size: int) -> bool:
        del size
        with _translated():
            stream = self._store.open_output_stream(self._path(key), compression=None)
        try:
            for block in blocks:
                with _translated():
                    stream.write(block)
            with _translated():
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

    def copy(self, source: str, target: str) -> None:
        with _translated():
            self._store.copy_file(self._path(source), self._path(target))

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                with _translated():
                    self._store.delete_file(self._path(key))
            except FileNotFoundError:
                continue


def s3_options() -> dict[str, Any]:
    """Return what tells `pyarrow` where the store is that the environment and the AWS files name."""
    options: dict[str, Any] = {"background_writes": False}
    if region := setting("region", "AWS_REGION", "AWS_DEFAULT_REGION"):
        options["region"] = region
    if endpoint := setting("endpoint_url", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        scheme, separator, host = endpoint.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme if separator else "https"}
    return options


@contextmanager
def _translated() -> Iterator[None]:
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

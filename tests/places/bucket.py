"""A bucket in memory, behind the same file system interface as a real one. Real servers: tests/interop/test_s3.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fsspec
from pyarrow import fs

from packtool.places import client, mirror, staging

URL = "s3://bucket"


class Bucket:
    """What is in the bucket.

    Args:
        monkeypatch: of the test that the bucket is for.

    Attributes:
        requests: (method, path) of each that was made; append to `failures` an exception for the next one to raise.
    """

    def __init__(self, monkeypatch: Any) -> None:
        self.requests: list[tuple[str, str]] = []
        self.failures: list[BaseException] = []
        memory = fsspec.filesystem("memory", skip_instance_cache=True)
        memory.store, memory.pseudo_dirs = {}, [""]  # class attributes otherwise
        self._fs = fs.PyFileSystem(fs.FSSpecHandler(memory))
        monkeypatch.setitem(client._clients, (os.getpid(), URL), self)
        monkeypatch.setattr(client, "DELAYS", (0.0, 0.0))
        monkeypatch.setattr(mirror, "_mirrors", {})
        monkeypatch.setattr(staging, "_outputs", {})

    def _note(self, method: str, path: str) -> None:
        self.requests.append((method, path))
        if self.failures:
            raise self.failures.pop(0)

    def get_file_info(self, what: Any) -> Any:
        self._note("info", getattr(what, "base_dir", what))
        if isinstance(what, str):
            return self._fs.get_file_info(what)
        found = self._fs.get_file_info(what)
        return [fs.FileInfo(each.path.lstrip("/"), each.type, size=each.size) for each in found]

    def open_output_stream(self, path: str, compression: None = None) -> Any:
        self._note("put", path)
        return self._fs.open_output_stream(path, compression=compression)

    def open_input_file(self, path: str) -> Any:
        self._note("get", path)
        return self._fs.open_input_file(path)

    def delete_file(self, path: str) -> None:
        self._note("delete", path)
        self._fs.delete_file(path)

    def delete_dir(self, path: str) -> None:
        self._note("delete", path)
        self._fs.delete_dir(path)

    def copy_file(self, source: str, target: str) -> None:
        self._note("copy", target)
        self._fs.copy_file(source, target)

    def names(self, path: str) -> list[str]:
        found = self._fs.get_file_info(fs.FileSelector(f"bucket/{path}", recursive=True, allow_not_found=True))
        return sorted(each.path.removeprefix(f"/bucket/{path}/") for each in found if each.type == fs.FileType.File)

    def put(self, path: str, data: bytes) -> None:
        with self._fs.open_output_stream(f"bucket/{path}", compression=None) as out:
            out.write(data)

    def get(self, path: str) -> bytes:
        with self._fs.open_input_file(f"bucket/{path}") as file:
            data: bytes = file.read()
        return data

    def put_all(self, directory: Path, path: str) -> None:
        for file in directory.rglob("*"):
            if file.is_file():
                self.put(f"{path}/{file.relative_to(directory)}", file.read_bytes())

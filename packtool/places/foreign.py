"""File systems of other packages, behind `fsspec`: their errors become those that a file system has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyarrow import fs
from pyarrow.lib import PythonFile


def translated(store: Any) -> Any:
    """The same `pyarrow.fs` file system, whose requests fail with nothing but `OSError`.

    Hugging Face's, for one, lets errors of its HTTP client through, which are of a kind of their own.
    """
    handler = getattr(store, "handler", None)
    return fs.PyFileSystem(_Handler(handler.fs)) if isinstance(handler, fs.FSSpecHandler) else store


@contextmanager
def _os_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, NotImplementedError):
        raise
    except Exception as error:
        raise OSError(str(error) or type(error).__name__) from error


class _Handler(fs.FSSpecHandler):  # type: ignore[misc]
    def get_file_info(self, paths: list[str]) -> list[Any]:
        with _os_errors():
            found: list[Any] = super().get_file_info(paths)
        return found

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        with _os_errors():
            found: list[Any] = super().get_file_info_selector(selector)
        return found

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        with _os_errors():
            if not self.fs.isfile(path):
                raise FileNotFoundError(path)
            return PythonFile(_File(self.fs.open(path, mode="rb")), mode="r")


class _File:
    """An open file whose reading fails with nothing but `OSError`."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        with _os_errors():
            found: bytes = self._file.read(size)
        return found

"""Values of Python: as JSON has them, and tables of whatever gives Arrow data, as pandas, polars, DuckDB do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packtool.errors import UsageError
from packtool.text.corpus.tables import row_of


def plain(value: Any) -> Any:
    """Return a value that JSON may have: a list of an array of NumPy, a number of a scalar, text of bytes.

    Raises:
        UsageError: bytes that are no text.

    >>> import numpy as np
    >>> plain(np.array([1, 2])), plain(np.int64(3)), plain(b"abc"), plain({"a": 1})
    ([1, 2], 3, 'abc', {'a': 1})
    """
    if value is None or isinstance(value, str | int | float | list | dict):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            what, remedy = "a record holds bytes that are not UTF-8", "decode what is text, and give ids as numbers"
            raise UsageError("bad-records", what, remedy=remedy, where="inputs") from None
    return str(value)


def is_table(given: object) -> bool:
    """Return whether an object gives Arrow data.

    >>> import pyarrow as pa
    >>> is_table(pa.table({"text": ["a"]})), is_table([{"text": "a"}])
    (True, False)
    """
    return hasattr(given, "__arrow_c_stream__")


class PythonTable:
    """A table of Python, which is asked for its data once.

    Args:
        given: what gives the data.

    Raises:
        UsageError: it can't.
    """

    def __init__(self, given: Any) -> None:
        import pyarrow as pa

        try:
            self._reader = pa.RecordBatchReader.from_stream(given)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise _refused(given, error) from None
        self._given = given
        self._ahead: list[Any] = []  # batches that were read for the first row

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._reader.schema.names)

    def first(self) -> Mapping[str, Any]:
        """Return the first row, or names with nulls where there is none; null for what JSON has nothing like."""
        import pyarrow as pa

        for batch in self._batches():
            self._ahead.append(batch)
            if len(batch):
                return row_of(pa.Table.from_batches([batch.slice(0, 1)]))
        return dict.fromkeys(self.names)

    def write(self, path: Path, wanted: Sequence[str]) -> None:
        """Write columns to a file of Arrow; where none of them is there, the first row, which tells what is."""
        import pyarrow as pa

        columns = [place for place, name in enumerate(self.names) if name in wanted]
        ahead, columns_there = list(self._ahead), bool(columns)
        if not columns_there:
            columns = list(range(len(self.names)))
            ahead = [batch.slice(0, 1) for batch in ahead]
        schema = pa.schema([self._reader.schema.field(place) for place in columns])
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
            for batch in ahead:
                out.write_batch(batch.select(columns))
            if columns_there:
                for batch in self._batches():
                    out.write_batch(batch.select(columns))

    def _batches(self) -> Iterator[Any]:
        """Yield the batches that were not read yet."""
        import pyarrow as pa

        try:
            for batch in self._reader:  # noqa: UP028 - `yield from` would close it behind the first row
                yield batch
        except (pa.ArrowException, ValueError) as error:
            raise _refused(self._given, error) from None


def _refused(given: object, error: Exception) -> UsageError:
    what = f"{type(given).__name__} does not give its data ({str(error).splitlines()[0]})"
    return UsageError("bad-records", what, remedy="give a table of Arrow, or records one by one", where="inputs")

"""Files of Arrow's IPC format, and streams of it as `datasets` writes them: the one way to open them, also in imports.

Arrow believes what such a file says of its arrays: where an offset points beyond the text, other memory of the process
would become a document, or reading it would end the process. So every batch is validated as a whole before anybody
looks into it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

from packtool.text.corpus.records import in_words
from packtool.text.corpus.tables import damaged
from packtool.text.faults import Fault

_FILE = b"ARROW1"
_END = b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0"
"""Ends of a stream: today's, and that of versions before 0.15."""
_LOST = "; what follows is lost"


class ArrowFile:
    """The record batches of a file or stream, in order, each of them valid but for texts that are not UTF-8.

    Args:
        file: seekable.

    Raises:
        Fault: damaged; also from iterating, after the batches before the damage.
    """

    def __init__(self, file: io.RawIOBase | Any) -> None:
        import pyarrow as pa

        self.is_stream = file.read(len(_FILE)) != _FILE  # a stream, all of which may be read at once
        self._ended = True
        if self.is_stream:
            longest = len(_END[0])
            file.seek(max(file.seek(0, io.SEEK_END) - longest, 0))
            self._ended = (file.read(longest) or b"").endswith(_END)
        file.seek(0)
        # No threads: a damaged batch would be decoded ahead of those before it.
        options = pa.ipc.IpcReadOptions(use_threads=False)
        self._errors = (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError)
        open_it = pa.ipc.open_stream if self.is_stream else pa.ipc.open_file
        try:
            self._reader = open_it(file, options=options)
            self.schema = self._reader.schema  # schema of all batches
            _read_names(self.schema)
        except UnicodeDecodeError:
            raise Fault("damaged-file", "the name of a column is not UTF-8") from None
        except self._errors as error:
            raise damaged("Arrow", error, _LOST) from None

    def __iter__(self) -> Iterator[Any]:
        number = 0
        while True:
            try:
                batch = self._batch(number)
            except self._errors as error:
                raise damaged("Arrow", error, _LOST) from None
            if batch is None:
                break
            self._require_valid(batch)
            yield batch
            number += 1
        if not self._ended:
            raise Fault("damaged-file", "a stream of Arrow without its end: what follows is lost")

    def _batch(self, number: int) -> Any:
        """Return the next batch; None at the end."""
        if not self.is_stream:
            return self._reader.get_batch(number) if number < self._reader.num_record_batches else None
        return next(self._reader, None)

    def _require_valid(self, batch: Any) -> None:
        """Refuse a batch whose arrays point beyond their memory."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            try:
                self._validate(column)
            except self._errors as error:
                what = f"column {field.name} is damaged: {in_words(error)}; what follows is lost"
                raise Fault("damaged-file", what) from None

    def _validate(self, column: Any) -> None:
        """Validate a column. A text that is not UTF-8 is the fault of a single record, which is told later."""
        column.validate()  # of cheap things, before the column is looked at as something else
        try:
            column.validate(full=True)
        except self._errors:
            kind = _as_bytes(column.type)
            if kind == column.type:
                raise
            column.view(kind).validate(full=True)


def _read_names(fields: Iterable[Any]) -> None:
    """Read the names of all fields, also inside of others, since reading one that is not UTF-8 raises an error."""
    for field in fields:
        _ = field.name
        kind = field.type
        _read_names(kind.field(number) for number in range(kind.num_fields))


def _as_bytes(kind: Any) -> Any:
    """Return a type in which texts are bytes."""
    import pyarrow as pa
    from pyarrow import types

    def inner(field: Any) -> Any:
        return field.with_type(_as_bytes(field.type))

    found = kind
    if types.is_string(kind):
        found = pa.binary()
    elif types.is_large_string(kind):
        found = pa.large_binary()
    elif types.is_string_view(kind):
        found = pa.binary_view()
    elif types.is_struct(kind):
        found = pa.struct([inner(kind.field(number)) for number in range(kind.num_fields)])
    elif types.is_list(kind):
        found = pa.list_(inner(kind.value_field))
    elif types.is_large_list(kind):
        found = pa.large_list(inner(kind.value_field))
    elif isinstance(kind, pa.BaseExtensionType):
        found = _as_bytes(kind.storage_type)
    return found

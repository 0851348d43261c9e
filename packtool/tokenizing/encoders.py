"""Encoders: a batch of texts to token ids, without the tokenizer's own post-processing.

`tokenizers` is the reference and works for every tokenizer.json; those of gigatoken.py, fastokens.py and splintr.py are
much faster and used only where they are known, and verified, to give the same ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.plan import I64

if TYPE_CHECKING:
    from tokenizers import Tokenizer

U32 = np.ndarray[Any, np.dtype[np.uint32]]

_REFERENCE_CHARS = 1 << 18
"""Characters handed to `tokenizers` at once: its encodings take some hundred bytes for each token."""


class Encoder(Protocol):
    """Turns texts into ids."""

    name: str

    def encode(self, texts: Sequence[str], utf8: Sequence[bytes] | None = None) -> tuple[U32, I64]:
        """Return all ids, one text after another, and the number of ids of each text; `utf8` has the texts as bytes."""
        ...


class EncoderMismatchError(PacktoolError):
    """The fast encoder gave other ids than the reference, or failed."""


class EncoderUnsuitableError(UsageError):
    """The fast encoder does not support this tokenizer."""


def guarded(library: str, function: Any, *arguments: Any, loads: bool = False, **options: Any) -> Any:
    """Call a fast library; what it raises becomes the error that names the way out.

    Args:
        loads: it is loaded, and nothing was encoded yet.

    Raises:
        EncoderUnsuitableError: it can't load the tokenizer.
        EncoderMismatchError: it failed on a text.
    """
    try:
        with _panics_caught():
            return function(*arguments, **options)
    except _LibraryError as error:
        what = f"{library} failed ({error})"
        if loads:
            raise unsuitable_error(what) from None
        raise mismatch_error(what) from None


class _LibraryError(Exception):
    """What a library raised, in one line."""


@contextmanager
def _panics_caught() -> Iterator[None]:
    """Make an error of all that a library in Rust raises: its panics are `BaseException`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise _LibraryError(str(error).splitlines()[0] if str(error) else type(error).__name__) from None


def mismatch_error(what: str, where: str = "--encoder") -> EncoderMismatchError:
    """Return the error for an encoder that is wrong."""
    return EncoderMismatchError("encoder-mismatch", what, remedy="give --encoder tokenizers", where=where)


def unsuitable_error(what: str) -> EncoderUnsuitableError:
    """Return the error for a fast encoder that was asked for by name, or that turned out not to serve."""
    remedy = "give --encoder auto or tokenizers"
    return EncoderUnsuitableError("encoder-unsuitable", what, remedy=remedy, where="--encoder")


def reference_tokenizer(data: bytes) -> Tokenizer:
    """Load a tokenizer.json with the `tokenizers` library, without padding, truncation and BPE dropout.

    Raises:
        DataError: the library can't load it.
    """
    from tokenizers import Tokenizer

    try:
        with _panics_caught():
            tokenizer = Tokenizer.from_buffer(data)
    except _LibraryError as error:
        raise DataError(
            "bad-tokenizer",
            f"the tokenizers library can't load it ({error})",
            remedy="give a tokenizer.json as that library writes it",
            where="tokenizer.json",
        ) from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if getattr(tokenizer.model, "dropout", None) is not None:
        tokenizer.model.dropout = None
    return tokenizer


class ReferenceEncoder:
    """The `tokenizers` library, on one thread.

    Args:
        data: a tokenizer.json.
        special_as_text: encode special tokens that occur in a text as plain text.
    """

    name = "tokenizers"

    def __init__(self, data: bytes, *, special_as_text: bool = False) -> None:
        self._data = data
        self._special_as_text = special_as_text
        self._loaded: Tokenizer | None = None

    def load(self) -> Tokenizer:
        """Load the library's tokenizer, unless it is loaded: a run may never need it."""
        if self._loaded is None:
            self._loaded = reference_tokenizer(self._data)
            self._loaded.encode_special_tokens = self._special_as_text
        return self._loaded

    def encode(self, texts: Sequence[str], utf8: Sequence[bytes] | None = None) -> tuple[U32, I64]:
        """See `Encoder.encode`."""
        del utf8  # the library takes strings
        ids: list[Any] = []
        with _one_thread():
            for part in _parts(texts, _REFERENCE_CHARS):
                ids += [np.array(encoding.ids, np.uint32) for encoding in self._encode(part)]
        lengths = np.array([len(each) for each in ids], np.int64)
        return (np.concatenate(ids) if ids else np.empty(0, np.uint32)), lengths

    def _encode(self, texts: list[str]) -> list[Any]:
        tokenizer = self.load()
        try:
            with _panics_caught():
                encodings: list[Any] = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except _LibraryError as error:
            raise DataError(
                "tokenizer-failed",
                f"the tokenizers library failed on a text with this tokenizer ({error})",
                remedy="check that the tokenizer.json is whole and consistent",
                where="tokenizer.json",
            ) from None
        return encodings


def _parts(texts: Sequence[str], chars: int) -> Iterator[list[str]]:
    """Yield consecutive texts, cut where `chars` characters are reached."""
    part: list[str] = []
    size = 0
    for text in texts:
        part.append(text)
        size += len(text)
        if size >= chars:
            yield part
            part, size = [], 0
    if part:
        yield part


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep a library from starting threads in a worker: workers are processes, and threads get in their way."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before

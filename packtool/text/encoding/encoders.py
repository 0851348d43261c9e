"""Encoders: turn a batch of texts into token ids, without the tokenizer's own post-processing.

`tokenizers` is the reference and works for every tokenizer.json; those of gigatoken.py and fastokens.py are much
faster and used only where they are known, and verified, to give the same ids.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.planning.plan import I64
from packtool.text.encoding.families import Shape

if TYPE_CHECKING:
    from tokenizers import Tokenizer

U32 = np.ndarray[Any, np.dtype[np.uint32]]
Encode: TypeAlias = Callable[[Sequence[str], Sequence[bytes] | None], tuple[U32, I64]]
"""Function from texts, and their UTF-8 if it is known, to (all ids, one text after another; ids of each text)."""


class EncoderRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen encoder, why it was chosen, and what a worker needs to load it besides the tokenizer.json."""

    encoder: str  # one of `encoder_choice.ENCODERS`, but not ``auto``
    why: str  # the reason for choosing it
    shape: Shape  # shape of the tokenizer
    cut: str  # where long texts may be cut (see long_texts.py)
    added_tokens: tuple[str, ...]  # texts of its added tokens
    vocab_size: int  # one more than the largest id
    special_as_text: bool  # encode special tokens that occur in a text as plain text
    rest: tuple[EncoderRecipe, ...] = ()  # next best encoders, should this one fail; empty if the user chose

    def fallback(self, error: EncoderMismatchError | EncoderUnsuitableError) -> EncoderRecipe:
        """Return the recipe to go on with: of the reference where this encoder was wrong, of the next best where it
        refuses the tokenizer."""
        if isinstance(error, EncoderMismatchError):
            return self.instead(error.what)
        following, *rest = self.rest
        why = "; ".join(filter(None, [error.what, following.why]))
        return msgspec.structs.replace(following, why=why, rest=tuple(rest))

    def instead(self, why: str) -> EncoderRecipe:
        """Return the recipe of the reference in place of this encoder."""
        return msgspec.structs.replace(self, encoder="tokenizers", why=why, rest=())


class EncoderMismatchError(PacktoolError):
    """The fast encoder gave other ids than the reference, or failed."""


class EncoderUnsuitableError(UsageError):
    """The fast encoder does not support this tokenizer."""


def called(failed: Callable[[str], PacktoolError], function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a Rust library; turn its errors, panics included, into the error that `failed` makes of one line."""
    try:
        return function(*arguments, **options)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # as panics are
        raise failed(str(error).splitlines()[0] if str(error) else type(error).__name__) from None


def guarded(library: str, function: Any, *arguments: Any, loads: bool = False, **options: Any) -> Any:
    """Call a fast library, and turn its errors into errors with a remedy: `unsuitable_error` while it `loads` a
    tokenizer, `mismatch_error` while it encodes."""
    error = unsuitable_error if loads else mismatch_error
    return called(lambda why: error(f"{library} failed ({why})"), function, *arguments, **options)


def mismatch_error(what: str, where: str = "--encoder") -> EncoderMismatchError:
    """Return the error for an encoder that is wrong."""
    return EncoderMismatchError("encoder-mismatch", what, remedy="give --encoder=tokenizers", where=where)


def unsuitable_error(what: str) -> EncoderUnsuitableError:
    """Return the error for a fast encoder that was asked for by name, or that turned out not to serve."""
    remedy = "give --encoder=auto or tokenizers"
    return EncoderUnsuitableError("encoder-unsuitable", what, remedy=remedy, where="--encoder")


def reference_tokenizer(data: bytes) -> Tokenizer:
    """Load a tokenizer.json with the `tokenizers` library, without padding, truncation and BPE dropout.

    Raises:
        DataError: the library can't load it.
    """
    from tokenizers import Tokenizer

    remedy = "give a tokenizer.json as that library writes it"
    tokenizer: Tokenizer = called(_problem("bad-tokenizer", "can't load it", remedy), Tokenizer.from_buffer, data)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if getattr(tokenizer.model, "dropout", None) is not None:
        tokenizer.model.dropout = None
    return tokenizer


def _problem(code: str, what: str, remedy: str) -> Callable[[str], DataError]:
    """Return what makes the error for a failure of the reference."""
    return lambda why: DataError(code, f"the tokenizers library {what} ({why})", remedy=remedy, where="tokenizer.json")


@functools.lru_cache(maxsize=1)
def shared_reference(data: bytes) -> Tokenizer:
    """Return the tokenizer of `reference_tokenizer`, built once in a process: it takes up to half a second.

    Whoever would change it builds one of their own.
    """
    return reference_tokenizer(data)


class ReferenceEncoder:
    """The `tokenizers` library, on one thread, and text by text: its encodings take some hundred bytes for each token.

    Args:
        data: the tokenizer.json.
        special_as_text: encode special tokens that occur in a text as plain text.
    """

    def __init__(self, data: bytes, *, special_as_text: bool = False) -> None:
        self.tokenizer = shared_reference(data)  # tokenizer of the library `tokenizers`
        if special_as_text:
            self.tokenizer = reference_tokenizer(data)
            self.tokenizer.encode_special_tokens = True

    def spell(self, text: str) -> U32:
        """Return the ids of one text."""
        return self.encode([text])[0]

    def encode(self, texts: Sequence[str], utf8: Sequence[bytes] | None = None) -> tuple[U32, I64]:
        """See `Encode`."""
        del utf8  # the library takes strings
        # What is meant for batches does not work out offsets, and so takes two thirds of the time.
        encode, remedy = self.tokenizer.encode_batch_fast, "check that the tokenizer.json is whole and consistent"
        failed = _problem("tokenizer-failed", "failed on a text with this tokenizer", remedy)
        with _one_thread():
            every = (called(failed, encode, [text], add_special_tokens=False)[0].ids for text in texts)
            ids = [np.array(part, np.uint32) for part in every]
        return np.concatenate([np.empty(0, np.uint32), *ids]), np.array(list(map(len, ids)), np.int64)


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

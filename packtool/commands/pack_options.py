"""The options of `pack`: checked before anything is read, and as the manifest describes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from packtool import packing
from packtool.errors import UsageError
from packtool.packing import PackOptions, Strategy
from packtool.packing.options import check
from packtool.storage.manifest import Options, TokenizerInfo

DEFAULT_SEED = 42
DEFAULT_SHARD_TOKENS = 1 << 28


def check_options(
    *, strategy: str, seed: int = DEFAULT_SEED, shard_tokens: int = DEFAULT_SHARD_TOKENS, **given: Any
) -> tuple[Strategy, PackOptions]:
    """The strategy and what it is asked to do.

    Args:
        strategy, seed, shard_tokens: as `packtool.pack` takes them.
        given: other options of `packtool.pack`; None means not given. Those that decide no plan are passed over.

    Raises:
        UsageError: they make no sense, or do not fit together.

    >>> check_options(strategy="concat", sequence_length=64, buckets=None, workers=3)[1].length
    64
    """
    convert: dict[str, Callable[[Any], Any]] = {
        "buckets": tuple,
        "padding_threshold": lambda value: _share(value, "--padding-threshold"),
        "max_repetition": lambda value: _share(value, "--max-repetition"),
    }
    chosen = packing.strategy(strategy)
    names = {field.name for field in fields(PackOptions)} & {name for name in given if given[name] is not None}
    options = PackOptions(**{name: convert.get(name, lambda value: value)(given[name]) for name in names})
    check(chosen, options)
    _require(0 <= seed < 1 << 64, seed, "give a number from 0 to 2^64 - 1", "--seed")
    _require(shard_tokens >= 1, shard_tokens, "give 1 or more", "--shard-tokens")
    return chosen, options


def padding_id(token: str | int | None, tokenizer: TokenizerInfo) -> int:
    """The id of the padding token: EOS unless one is given by id or by the text of an added token."""
    if token is None:
        return tokenizer.eos_id
    if isinstance(token, str) and token in tokenizer.added_tokens:
        return tokenizer.added_tokens[token]
    if str(token).isdecimal():
        number = int(token)
        _require(number < tokenizer.vocab_size, number, f"give an id below {tokenizer.vocab_size}", "--pad-token")
        return number
    known = ", ".join(tokenizer.added_tokens) or "none"
    raise UsageError(
        "unknown-token",
        f"{token!r} is not an added token of the tokenizer (it has: {known})",
        remedy="give one of them, or an id",
        where="--pad-token",
    )


def describe(chosen: Strategy, options: PackOptions, pad_id: int, shard_tokens: int, segments: bool) -> Options:
    """The options that the output depends on, as the manifest has them: in full, so that no default is left to guess.

    An atom size that was not given is left out: atoms are rows.
    """
    effective: dict[str, Any] = {
        "sequence_length": options.sequence_length,
        "atom_size": options.atom_size,
        "remainder": options.remainder,
        "buckets": options.bucket_sizes if "buckets" in chosen.accepts else None,
        "padding_threshold": str(options.padding_threshold),
        "max_repetition": str(options.max_repetition),
        "extra_capacity": options.extra if "extra_capacity" in chosen.accepts else None,
        "min_bucket": options.smallest_bucket,
        "optimize": options.optimize,
    }
    described = {name: value for name, value in effective.items() if name in chosen.accepts and value is not None}
    if chosen.windowed:
        described["window_tokens"] = options.window_tokens
    return {**described, "pad_id": pad_id, "shard_tokens": shard_tokens, "segments": segments}


def _share(value: str | float | Fraction, option: str) -> Fraction:
    """An exact share: 0.3 is three tenths, not the binary number next to it."""
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            "bad-option", f"{value!r} is not a share", remedy="give a number from 0 to 1", where=option
        ) from None


def _require(holds: bool, value: object, remedy: str, option: str) -> None:
    if not holds:
        raise UsageError("bad-option", f"{value} is out of range", remedy=remedy, where=option)

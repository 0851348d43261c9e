"""`doctor`: report versions, encoders, extras and what is missing; or how a given tokenizer is handled."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtool import __version__
from packtool.engines import available_cpus
from packtool.errors import PacktoolError
from packtool.installing import how_to_install

if TYPE_CHECKING:
    from packtool.encoding.encoders import EncoderRecipe

REQUIRED = {
    "msgspec": "reads JSONL, reads and writes manifests",
    "numpy": "arrays",
    "obstore": "object stores at s3://",
    "pyarrow": "reads Parquet, moves tokens",
    "rich": "draws tables",
    "tokenizers": "encoder for every tokenizer.json",
    "tqdm": "draws progress",
    "typer": "command line",
    "xxhash": "checksums",
}
if sys.version_info < (3, 14):  # which has it
    REQUIRED["backports-zstd"] = "reads zstd"
OPTIONAL = {
    "boto3": "AWS profiles that sign in, take a role or run a program",
    "gigatoken": "fast encoder for nearly all BPE tokenizers",
    "fastokens": "fast encoder for BPE on bytes with other regular expressions",
    "distributed": "--scheduler, a cluster of machines",
    "huggingface_hub": "tokenizers by hub id",
    "scipy": "pack --optimize",
    "jinja2": "chat templates, for packtool.conversations",
    "torch": "packtool.torch, the loader for PyTorch",
}
"""Package: what it is for."""
MODULES = {"backports-zstd": "backports.zstd"}
"""Package: what to import, where that has another name."""


@dataclass(frozen=True)
class Check:
    """One line of the diagnosis.

    Attributes:
        name: what was looked at.
        state: ``ok``, ``missing`` (something optional) or ``broken``.
        found: version, size or reason.
        remedy: what to do; empty when ok.
    """

    name: str
    state: str
    found: str
    remedy: str = ""


def doctor() -> list[Check]:
    """Look at everything packtool needs; nothing is changed."""
    return [
        Check("packtool", "ok", f"{__version__} in {Path(__file__).parents[1]}"),
        Check("python", "ok", f"{platform.python_version()} at {sys.executable}"),
        Check("platform", "ok", f"{platform.platform()}, {available_cpus()} CPUs, {_memory()}"),
        _temporary(),
        *(_package(name, purpose, "broken") for name, purpose in REQUIRED.items()),
        *(_package(name, purpose, "missing") for name, purpose in OPTIONAL.items()),
        _encoders(),
    ]


def _package(name: str, purpose: str, absent: str) -> Check:
    module = MODULES.get(name, name)
    try:
        importlib.import_module(module)
    except ImportError as error:
        state = absent if isinstance(error, ModuleNotFoundError) and error.name == module else "broken"
        return Check(name, state, f"{error}; {purpose}", how_to_install(name))
    return Check(name, "ok", f"{metadata.version(name)}; {purpose}")


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory"
    except (ValueError, OSError, AttributeError):
        return "memory unknown"


def _temporary() -> Check:
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"packtool")
        free = shutil.disk_usage(tempfile.gettempdir()).free
    except OSError as error:
        return Check("temporary", "broken", str(error), "set TMPDIR to a directory that can be written")
    return Check("temporary", "ok", f"{tempfile.gettempdir()}, {free / 1e9:.1f} GB free")


def _encoders() -> Check:
    """Encode the built-in probes with every encoder there is, as `tokenize` does before it trusts the fast one."""
    try:
        from packtool.encoding.encoder_choice import choose, load_encoder
        from packtool.encoding.load import find

        tokenizer = find()
        recipe = choose(tokenizer.spec, vocab_size=tokenizer.vocab_size)
        load_encoder(recipe, tokenizer.data)
    except (ImportError, PacktoolError) as error:
        return Check("encoders", "broken", str(error), "install packtool and what it needs again")
    if recipe.encoder == "tokenizers":
        what, remedy = f"tokenizers only: {recipe.why}", f"for the fast one: {how_to_install('gigatoken')}"
        return Check("encoders", "missing", what, remedy)
    return Check("encoders", "ok", f"{recipe.encoder} agrees with tokenizers on the built-in tokenizer")


def doctor_of_tokenizer(source: str | Path) -> list[Check]:
    """Look at a tokenizer: its encoder and why, its EOS, and how fast each encoder is; nothing is changed.

    Args:
        source: a tokenizer.json, a directory that holds one, or the id of a hub repository.

    Raises:
        DataError: no such tokenizer, or it can't be read.
    """
    from packtool.encoding.encoder_choice import choose
    from packtool.encoding.load import find

    tokenizer = find(source)
    recipe = choose(tokenizer.spec, vocab_size=tokenizer.vocab_size)
    measured, failed = _measured(tokenizer.data, recipe)
    if failed:
        recipe = recipe.instead(failed)
    model = tokenizer.spec["model"].get("type")
    entries, below = len(tokenizer.vocab), tokenizer.vocab_size
    return [
        Check("tokenizer", "ok", f"{source}: {model}, {entries:,} entries, ids below {below:,}"),
        Check("encoder", "ok", f"{recipe.encoder}: {recipe.why}"),
        Check("long documents", "ok", "in pieces" if recipe.cut else "whole: memory grows with the longest one"),
        _eos(tokenizer.vocab, tokenizer.configs, tokenizer.spec),
        *measured,
    ]


def _eos(vocab: Mapping[str, int], configs: list[Mapping[str, Any]], spec: Mapping[str, Any]) -> Check:
    from packtool.encoding.special import candidates, doubt, marked, special

    known = candidates("eos", vocab, marked(spec))
    others = f"; candidates: {', '.join(known)}" if known else ""
    try:
        number, text = special("eos", None, vocab, configs, marked(spec))
    except PacktoolError as error:
        return Check("EOS", "missing", error.what, error.remedy)
    if why := doubt(text, marked(spec)):
        remedy = "to pretrain, name the token that ends a document with --eos-token"
        return Check("EOS", "missing", f"{text} ({number}), {why}{others}", remedy)
    return Check("EOS", "ok", f"{text} ({number}){others}")


def _measured(data: bytes, recipe: EncoderRecipe) -> tuple[list[Check], str]:
    """Measure each encoder on a megabyte: CPU seconds to load it, MB per CPU second, and whether its ids are the same.

    Returns:
        A line for each, and why the fast one will not run after all.
    """
    import numpy as np

    from packtool.encoding.encoder_choice import load_encoder
    from packtool.encoding.encoders import ReferenceEncoder

    texts = _megabyte()
    amount = sum(len(text.encode()) for text in texts) / 1e6
    began = time.process_time()
    reference = ReferenceEncoder(data)
    loaded = time.process_time()
    expected, lengths = reference.encode(texts)
    rate = amount / (time.process_time() - loaded)
    checks = [Check("tokenizers", "ok", f"{rate:.1f} MB per CPU second, loaded in {loaded - began:.2f}")]
    name = recipe.encoder
    if name == "tokenizers":
        return checks, ""
    remedy = "tokenizers is used instead, which is only slower"
    try:
        began = time.process_time()
        fast = load_encoder(recipe, data)
        loaded = time.process_time()
        ids, each = fast.encode(texts)
        rate = amount / (time.process_time() - loaded)
    except PacktoolError as error:
        return [*checks, Check(name, "missing", error.what, remedy)], error.what
    if not (np.array_equal(ids, expected) and np.array_equal(each, lengths)):
        what = "other ids than tokenizers"
        return [*checks, Check(name, "broken", what, remedy)], what
    what = f"{rate:.1f} MB per CPU second at first, loaded and probed in {loaded - began:.2f}; the same ids"
    return [*checks, Check(name, "ok", what)], ""


def _megabyte() -> list[str]:
    """Return a megabyte of Python's own sources, in paragraphs."""
    texts: list[str] = []
    size = 0
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        parts = path.read_text(encoding="utf-8", errors="replace").split("\n\n")
        texts += parts
        size += sum(map(len, parts))
        if size >= 1 << 20:
            break
    return texts

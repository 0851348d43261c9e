"""Describe what a command wrote: finished, unfinished, damaged; and what to do with it.

Reads manifests and file sizes, no tokens.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from packtool.commands.path_info import Info, free_name, length_to_try
from packtool.errors import DataError, PacktoolError
from packtool.formats import manifest as manifests
from packtool.formats.made_by import command_again, describe_tokenizer, excluded_by, tokenizer_named
from packtool.formats.names import UNFINISHED
from packtool.formats.schema import (
    ExportManifest,
    InputEntry,
    KeptColumn,
    Manifest,
    PackedManifest,
    StoreManifest,
    listed_files,
)
from packtool.options.arguments import as_recorded_by, command_line
from packtool.options.commands import WRITING
from packtool.outputs.claim import look
from packtool.outputs.output import State
from packtool.places.place import Place
from packtool.planning.metrics.ratios import ratio
from packtool.report.choice_words import choice_in_words, left_out_of
from packtool.report.figures import order_in_words, percent, texts_left_out
from packtool.support.decoding import from_json
from packtool.support.sizes import plural, show_bytes


def dataset_info(place: Place) -> Info:
    """Describe the finished or unfinished output of a command."""
    there = place.names()
    if manifests.MANIFEST not in there and any(name.startswith(f"{UNFINISHED}/") for name in there):
        return _unfinished(place, there)
    return _finished(place, manifests.read(place), there)


def is_output(path: Path) -> bool:
    """Return whether a directory holds the output of a command, finished or not."""
    if not path.is_dir():
        return False
    if (path / manifests.MANIFEST).exists() or any(map(Path.is_file, (path / UNFINISHED).rglob("*"))):
        return True
    try:
        from_json((path / manifests.RUN).read_bytes(), State)
    except (OSError, ValueError):
        return False
    return True  # whose manifest is lost, or that never had one, as orders of before the first release


def member_info(path: Path) -> Info | None:
    """Describe a file of a finished dataset, up to two directories above it; None if it is no such file."""
    for whole in (path.parent, path.parent.parent):
        if not (whole / manifests.MANIFEST).is_file() or not path.resolve().is_relative_to(whole.resolve()):
            continue
        manifest = manifests.read(whole)
        known = {file.name for file in listed_files(manifest)} | {manifests.MANIFEST, manifests.RUN}
        if path.relative_to(whole).as_posix() in known:
            kind = f"file of the {manifest.format.removeprefix('packtool ')} {whole}"
            facts = {"bytes": path.stat().st_size}
            return Info(path, kind, "unknown", facts, next=[f"packtool info {shlex.quote(str(whole))}"])
    return None


def _finished(place: Place, manifest: Manifest, there: Mapping[str, int]) -> Info:
    """Describe a finished dataset.

    Args:
        there: the bytes of each file that lies in the place.
    """
    files = list(listed_files(manifest))
    missing = [file.name for file in files if there.get(file.name) != file.bytes]
    facts: dict[str, Any] = {}
    following: list[str] = []
    quoted = shlex.quote(str(place))
    if isinstance(manifest, StoreManifest):
        facts = _of_store(place, manifest)
        length = length_to_try(manifest.counts["tokens"])
        following = [
            f"packtool stats {quoted} --compare all --sequence-length {length}",
            f"packtool show {quoted} --document 0",
        ]
        if manifest.part is None:
            to_pack = f"packtool pack {quoted} -o {free_name('packed')} --strategy bfd --sequence-length {length}"
            following.insert(1, to_pack)
    elif isinstance(manifest, PackedManifest):
        facts = _of_packed(place, manifest, sum(file.bytes for file in files))
        following = [f"packtool stats {quoted}", f"packtool show {quoted} --row 0", f"packtool verify {quoted}"]
        if manifest.index_only:
            following.insert(0, f"packtool materialize {quoted} -o {free_name('packed')}")
        if manifest.shuffle is None:
            following.insert(0, f"packtool shuffle {quoted} -o {free_name('shuffled')}")
    elif isinstance(manifest, ExportManifest):
        facts = {
            "written for": manifest.exported_as,
            "sequences": manifest.sequences,
            "tokens": manifest.tokens,
            "left out": left_out_of(manifest.choice) or None,
            "not kept": "; ".join(manifest.lost) or None,
        }
        following = [f"packtool verify {quoted}"]
    facts["dtype"] = getattr(manifest, "dtype", None)
    if isinstance(manifest, ExportManifest):  # their files have the names of other tools
        facts["files"] = len(files)
    else:
        facts["shards"] = _shards(manifest, files)
    facts |= {"bytes": sum(file.bytes for file in files), "written by": f"packtool {manifest.packtool_version}"}
    facts["made by"] = command_again(place)
    known = {name: value for name, value in facts.items() if value is not None}
    kind = manifest.format.removeprefix("packtool ")
    gone = _gone(place, manifest)
    if gone:
        known["rows gathered from"] = gone
    if gone and not missing:
        elsewhere = f"packtool materialize {quoted} -o {free_name('packed')} --store STORE"
        return Info(place.shown, kind, "incomplete", known, next=[elsewhere])
    if missing:
        return Info(place.shown, kind, "damaged", known, missing, next=[f"packtool verify {quoted}"])
    return Info(place.shown, kind, "whole", known, next=following)


def _gone(place: Place, manifest: Manifest) -> str:
    """Say why the rows of a dataset without tokens can't be gathered; "" where they can, or it has tokens."""
    if not isinstance(manifest, PackedManifest) or not manifest.index_only:
        return ""
    from packtool.formats.packed import PackedDataset  # each of these takes a while to load, for few datasets
    from packtool.rows.stored_tokens import store_places

    try:
        store_places(PackedDataset(place))
    except PacktoolError as error:
        return f"{error.where}: {error.what}. {error.remedy}"
    return ""


def _of_store(place: Place, manifest: StoreManifest) -> dict[str, Any]:
    from packtool.text.corpus.read_fields import recorded_lines  # with the room of texts, that others do without

    return {
        "documents": manifest.counts["documents"],
        "tokens": manifest.counts["tokens"],
        "trained on": _trained(manifest.counts.get("trained_tokens"), manifest.counts["tokens"]),
        "tokenizer": describe_tokenizer(manifest.tokenizer, tokenizer_named([place])),
        "EOS": f"{manifest.tokenizer.eos_token} ({manifest.tokenizer.eos_id})",
        "vocabulary": manifest.tokenizer.vocab_size,
        "rearranged": _rearranged(manifest),
        "records": "; ".join(recorded_lines(manifest.options)) or None,
        "left out": texts_left_out(manifest.counts) or None,
    }


def _of_packed(place: Place, manifest: PackedManifest, size: int) -> dict[str, Any]:
    """Return the facts about a packed dataset; `size` is that of its files, in bytes."""
    lengths = sorted({bucket.sequence_length for bucket in manifest.buckets})
    facts = {
        "strategy": manifest.strategy,
        "sequence length": lengths[0] if len(lengths) == 1 else lengths,
        "rows": manifest.ledger.rows,
        "tokens": manifest.ledger.output,
        "trained on": _trained(manifest.ledger.trained, manifest.ledger.output),
        "documents": manifest.documents,
        "tokenizer": describe_tokenizer(manifest.tokenizer, tokenizer_named([place])),
        "EOS": f"{manifest.tokenizer.eos_token} ({manifest.tokenizer.eos_id})",
        "order": order_in_words(manifest.shuffle),
        "ordered by": ",".join(manifest.options.get("order_by", ())) or None,
        **_choice_of(place, manifest),
    }
    if manifest.batches is not None:
        facts["batches"] = manifest.batches.shape[0]
    facts["segments"] = manifest.lengths is not None
    facts["columns"] = "; ".join(map(_kept, manifest.columns)) or None
    if isinstance(manifest.stores, list):
        tokens = manifest.ledger.output * np.dtype(manifest.dtype).itemsize
        facts["rows gathered from"] = ", ".join(manifest.stores)
        facts["index"] = f"{show_bytes(size)}; the tokens of its rows would take {show_bytes(tokens)}"
    return facts


def _choice_of(place: Place, manifest: PackedManifest) -> dict[str, Any]:
    """Say how the documents were chosen, and what share of the tokens each of several stores has, asked and got."""
    facts: dict[str, Any] = {}
    weighed = False
    if manifest.choice is not None:
        weighed = "mix" in manifest.choice.options
        facts["chosen by"] = choice_in_words(manifest.choice.options, excluded_by(place)) or None
        facts["left out"] = left_out_of(manifest.choice) or None
    if len(manifest.inputs) > 1:
        from packtool.report.dataset_report import read_report  # it knows every measure: too slow to load for one store

        names = manifests.input_names(place, manifest.inputs)
        with suppress(OSError, DataError):  # a report that is missing is said below
            for name, source in zip(names, read_report(place, manifest).sources, strict=False):
                got, asked = percent(source.token_share), percent(source.asked_share)
                facts[f"from {name}"] = f"{got} of the tokens"
                if weighed and asked != got:
                    facts[f"from {name}"] += f" ({asked} asked)"
    return facts


def _kept(column: KeptColumn) -> str:
    """Describe a column that was kept of the documents."""
    kind = "numbers" if column.categories is None else "categories"
    if not column.missing:
        return f"{column.name} ({kind})"
    return f"{column.name} ({kind}, missing in {plural(column.missing, 'document')})"


def _shards(manifest: Manifest, files: Sequence[InputEntry]) -> int:
    kind = "tokens-"
    if isinstance(manifest, PackedManifest) and manifest.index_only:
        kind = "segments-"
    return sum(file.name.rpartition("/")[2].startswith(kind) for file in files)


def _rearranged(manifest: StoreManifest) -> str | None:
    """Count the documents that were rearranged to fill in the middle; None if texts stay as they are."""
    documents = manifest.counts.get("fim_documents")
    if documents is None:
        return None
    share = percent(ratio(documents, manifest.counts["documents"]))
    return f"{plural(documents, 'document')} ({share}) to fill in the middle"


def _trained(trained: int | None, tokens: int) -> str | None:
    """Count the tokens that train; None if all do."""
    if trained is None:
        return None
    return f"{trained:,} ({percent(ratio(trained, tokens))})"


def _unfinished(place: Place, there: Mapping[str, int]) -> Info:
    try:
        begun = look(place).mark
    except PacktoolError:
        begun = None
    command, arguments = "?", None
    if begun is not None and begun.command in WRITING:
        command, arguments = begun.command, as_recorded_by(begun.command, begun.arguments)
    facts = {"begun by": f"packtool {command}", "files": len(there), "bytes": sum(there.values())}
    path, quoted = place.shown, shlex.quote(str(place))
    if arguments:
        call = command_line(command, arguments, str(place))
        following = [f"{call} --resume", f"{call} --overwrite"]
    else:
        following = [
            f"packtool {command} ... -o {quoted} --resume      goes on, with the options it was begun with",
            f"packtool {command} ... -o {quoted} --overwrite   starts again",
        ]
    return Info(path, "output of an interrupted command", "unfinished", facts, next=following)

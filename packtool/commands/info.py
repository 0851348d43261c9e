"""`info`: say what a path is, whether it is complete, and what to do next.

Reads manifests and file sizes, no tokens; and files of conversations, to count them.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from msgspec import UnsetType

from packtool.blending.blend import Blend
from packtool.commands.made_by import command_again, tokenizer_named
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.fields import CONVERSATION
from packtool.formats.names import MARKER, TOKENIZER, UNFINISHED
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import (
    ExportManifest,
    InputEntry,
    KeptColumn,
    Manifest,
    OrderRecord,
    PackedManifest,
    Shuffle,
    StoreManifest,
    listed,
)
from packtool.options.arguments import command_line
from packtool.options.inspecting import InfoArguments
from packtool.options.signature import takes
from packtool.outputs.claim import look
from packtool.outputs.tokenizer_files import describe_tokenizer
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.typed import place_of
from packtool.planning.metrics.ratios import ratio
from packtool.report.figures import options_in_words, percent
from packtool.report.packed import read_report
from packtool.support.sizes import plural, show_bytes
from packtool.support.toml_file import read_toml
from packtool.text.conversations.conversation import ConversationError
from packtool.text.conversations.message import known_role
from packtool.text.conversations.record import conversation_of
from packtool.text.corpus.find import find_files
from packtool.text.corpus.first import FirstRecord, held_by
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import CorpusFile, Fields, Span
from packtool.writing.stored_tokens import store_places

MOST_FILES = 10_000
"""Most files to count in a directory that packtool did not write."""
_OTHERS = "records that can't be used"
_HEAD = 1024
"""Bytes of a file in which the first entries of a tokenizer.json lie."""
_TRIED = 3
"""Files to try before a command is advised."""
MOST_BYTES = 1 << 30
"""Most bytes to read of a file of conversations, to count them."""


@dataclass(frozen=True)
class Info:
    """A description of a path.

    Attributes:
        path: as given.
        kind: ``token store``, ``packed dataset`` and so on; ``directory of datasets``; ``configuration``;
            ``blend``; ``tokenizer``; ``not written by packtool``.
        state: ``whole``, ``unfinished``, ``damaged`` (files missing or of the wrong size), or ``unknown``.
        facts: what to know about it, in order.
        missing: names of files that are missing or have the wrong size.
        parts: of a directory of datasets: what each of them is.
        next: commands that make sense now.
    """

    path: Path | str
    kind: str
    state: str
    facts: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    parts: list[Info] = field(default_factory=list)
    next: list[str] = field(default_factory=list)


@takes(InfoArguments)
def info(options: InfoArguments) -> Info:
    """Describe a path.

    Raises:
        DataError: there is nothing, or a manifest that can't be read.
        UsageError: the file is not valid TOML, or a blend with an error.
    """
    place = place_of(options.path)
    if not isinstance(place, LocalPlace):
        return _dataset(place)
    path = place.path
    if not path.exists():
        raise DataError("missing-input", "no such file or directory", remedy="check the path", where=str(path))
    if path.is_file():
        return _file(path)
    if not path.is_dir():
        raise DataError("not-a-file", "a pipe or device", remedy="give a file or directory", where=str(path))
    if _is_output(path):
        return _dataset(place)
    if (path / TOKENIZER).is_file():
        return _tokenizer(path)
    parts = [_dataset(LocalPlace(child)) for child in sorted(path.iterdir()) if _is_output(child)]
    if parts:
        done = sum(part.state == "whole" for part in parts)
        state = "whole" if done == len(parts) else "unfinished"
        return Info(path, "directory of datasets", state, {"datasets": len(parts), "whole": done}, parts=parts)
    return _foreign(path)


def _dataset(place: Place) -> Info:
    """Describe the finished or unfinished output of a command."""
    there = place.names()
    if manifests.MANIFEST not in there:
        order = None if MARKER in there else manifests.order_at(place)
        if order is not None:
            return _order(place, order, there)
        if any(name.startswith(f"{UNFINISHED}/") for name in there):
            return _unfinished(place, there)
    return _finished(place, manifests.read(place), there)


def _is_output(path: Path) -> bool:
    if not path.is_dir():
        return False
    if (path / manifests.MANIFEST).exists() or (path / UNFINISHED).is_dir():
        return True
    return manifests.order_at(LocalPlace(path)) is not None


def _order(place: Place, order: OrderRecord, there: Mapping[str, int]) -> Info:
    """Describe what `shuffle --order-only` wrote."""
    missing = [file.name for file in order.files if there.get(file.name) != file.bytes]
    facts = {"files": len(order.files), "bytes": sum(file.bytes for file in order.files)}
    return Info(place.shown, str(order), "damaged" if missing else "whole", facts, missing)


def _finished(place: Place, manifest: Manifest, there: Mapping[str, int]) -> Info:
    files = list(listed(manifest))
    missing = [file.name for file in files if there.get(file.name) != file.bytes]
    facts: dict[str, Any] = {}
    following: list[str] = []
    quoted = shlex.quote(str(place))
    if isinstance(manifest, StoreManifest):
        facts = _of_store(place, manifest)
        following = [
            f"packtool stats {quoted} --compare all --sequence-length 2048",
            f"packtool pack {quoted} -o {_free('packed')} --strategy bfd --sequence-length 2048",
            f"packtool show {quoted} --document 0",
        ]
    elif isinstance(manifest, PackedManifest):
        facts = _of_packed(place, manifest, sum(file.bytes for file in files))
        following = [f"packtool stats {quoted}", f"packtool show {quoted} --row 0", f"packtool verify {quoted}"]
        if manifest.index_only:
            following.insert(0, f"packtool materialize {quoted} -o {_free('packed')}")
        if manifest.shuffle is None:
            following.insert(0, f"packtool shuffle {quoted} -o {_free('shuffled')}")
    elif isinstance(manifest, ExportManifest):
        facts = {
            "written for": manifest.exported_as,
            "sequences": manifest.sequences,
            "tokens": manifest.tokens,
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
    if missing or gone:
        return Info(place.shown, kind, "damaged", known, missing, next=[f"packtool verify {quoted}"])
    return Info(place.shown, kind, "whole", known, next=following)


def _free(name: str) -> str:
    """Return a name for an output in the working directory that nothing has yet."""
    found, number = name, 1
    while Path(found).exists():
        number += 1
        found = f"{name}-{number}"
    return found


def _gone(place: Place, manifest: Manifest) -> str:
    """Say why the rows of a dataset without tokens can't be gathered; "" where they can, or it has tokens."""
    if not isinstance(manifest, PackedManifest) or not manifest.index_only:
        return ""
    try:
        store_places(PackedDataset(place))
    except PacktoolError as error:
        return f"{error.where}: {error.what}. {error.remedy}"
    return ""


def _of_store(place: Place, manifest: StoreManifest) -> dict[str, Any]:
    return {
        "documents": manifest.counts["documents"],
        "tokens": manifest.counts["tokens"],
        "trained on": _trained(manifest.counts.get("trained_tokens"), manifest.counts["tokens"]),
        "tokenizer": describe_tokenizer(manifest.tokenizer, tokenizer_named([place])),
        "EOS": f"{manifest.tokenizer.eos_token} ({manifest.tokenizer.eos_id})",
        "vocabulary": manifest.tokenizer.vocab_size,
        "rearranged": _rearranged(manifest),
    }


def _of_packed(place: Place, manifest: PackedManifest, size: int) -> dict[str, Any]:
    """Return what to know of a packed dataset; `size` is that of its files, in bytes."""
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
        "order": _order_of(manifest.shuffle),
        "ordered by": ",".join(manifest.options.get("order_by", ())) or None,
        **_choice_of(place, manifest),
    }
    if manifest.batches is not None:
        facts["batches"] = manifest.batches.shape[0]
    facts["segments"] = manifest.lengths is not None
    facts["columns"] = "; ".join(map(_kept, manifest.kept_columns)) or None
    if isinstance(manifest.stores, list):
        tokens = manifest.ledger.output * np.dtype(manifest.dtype).itemsize
        facts["rows gathered from"] = ", ".join(manifest.stores)
        facts["index"] = f"{show_bytes(size)}; the tokens of its rows would take {show_bytes(tokens)}"
    return facts


def _choice_of(place: Place, manifest: PackedManifest) -> dict[str, Any]:
    """Say how the documents were chosen, and what share of the tokens each of several stores has, asked and got."""
    facts: dict[str, Any] = {}
    if manifest.choice is not None:
        how = dict(manifest.choice.options)
        how.pop("mix", None)  # its shares are told store by store
        facts["chosen by"] = options_in_words(how) or None
    if len(manifest.inputs) > 1:
        names = manifests.input_names(place, manifest.inputs)
        with suppress(OSError, DataError):  # a report that is missing is said below
            for name, source in zip(names, read_report(place, manifest).sources, strict=True):
                got = f"{percent(source.token_share)} of the tokens"
                facts[f"from {name}"] = f"{got} ({percent(source.asked_share)} asked)"
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


def _trained(trained: int | UnsetType | None, tokens: int) -> str | None:
    """Count the tokens that train; None if all do."""
    if not isinstance(trained, int):
        return None
    return f"{trained:,} ({percent(ratio(trained, tokens))})"


def _order_of(shuffle: Shuffle | None) -> str:
    if shuffle is None:
        return "as in the corpus"
    return f"{shuffle.method} shuffle, seed {shuffle.seed}, epoch {shuffle.epoch}"


def _unfinished(place: Place, there: Mapping[str, int]) -> Info:
    try:
        begun = look(place).mark
    except PacktoolError:
        begun = None
    command = begun.command if begun else "?"
    facts = {"begun by": f"packtool {command}", "files": len(there), "bytes": sum(there.values())}
    path, quoted = place.shown, shlex.quote(str(place))
    if begun is not None and begun.arguments:
        call = command_line(command, begun.arguments, str(place))
        following = [f"{call} --resume", f"{call} --overwrite"]
    else:
        following = [
            f"packtool {command} ... -o {quoted} --resume      goes on, with the options it was begun with",
            f"packtool {command} ... -o {quoted} --overwrite   starts again",
        ]
    return Info(path, "output of an interrupted command", "unfinished", facts, next=following)


def _file(path: Path) -> Info:
    facts: dict[str, Any] = {"bytes": path.stat().st_size}
    quoted = shlex.quote(str(path))
    if path.suffix == ".toml":
        if "sources" in read_toml(path).values:
            blend = Blend.read(path)
            facts |= {"sources": ", ".join(sorted(blend.sources)), "stages": len(blend.stages)}
            return Info(path, "blend", "unknown", facts, next=[f"packtool stats {quoted}"])
        run = f"packtool run {quoted}"
        return Info(path, "configuration", "unknown", facts, next=[f"{run} --dry-run", run])
    if path.name == TOKENIZER or _begins_as_tokenizer(path):
        return _tokenizer(path)
    for whole in (path.parent, path.parent.parent):
        if (whole / manifests.MANIFEST).is_file() and path.resolve().is_relative_to(whole.resolve()):
            manifest = manifests.read(whole)
            known = {file.name for file in listed(manifest)} | {manifests.MANIFEST, manifests.RUN}
            if path.relative_to(whole).as_posix() in known:
                kind = f"file of the {manifest.format.removeprefix('packtool ')} {whole}"
                return Info(path, kind, "unknown", facts, next=[f"packtool info {shlex.quote(str(whole))}"])
    talks = _conversations(path)
    if talks is not None:
        command = f"packtool tokenize {quoted} -o {_free('tokens')} --tokenizer MODEL"
        usable = any(name != _OTHERS for name in talks) or not talks
        following = [_rendering(command, skip=_OTHERS in talks)] if usable else []
        return Info(path, "conversations", "unknown", facts | talks, next=following)
    advice, problem = _advice(path)
    return Info(path, "not written by packtool", "unknown", facts | problem, next=advice)


def _advice(path: Path) -> tuple[list[str], dict[str, str]]:
    """Return a command that reads a file or directory, tried on its first documents; else what is in the way."""
    command = f"packtool tokenize {shlex.quote(str(path))} -o {_free('tokens')}"
    with catch_warnings():
        simplefilter("ignore")
        try:
            files = find_files(path, None)
            held = held_by(files, "text")
            if held.layout is not None:
                command += f" {held.layout.shown()}"
            if held.chats:
                found, problems = _count(files[:_TRIED], held, batches=1)
                facts = {"to tokenize it": f"{problems[0]}: fix the conversations"} if problems else {}
                advised = [_rendering(f"{command} --tokenizer MODEL", skip=bool(problems))]
                return advised if found else [], facts
            for file in files[:_TRIED]:
                for batch in SpanReader(file, Span(0, 0, 1), Fields()):
                    if not batch.rejects:
                        break
                    reject = batch.rejects[0]
                    remedy = held.remedy if reject.code == "missing-text" else reject.remedy
                    skipping = [f"{command} --on-error skip   leaves it out"] if batch.documents else []
                    return skipping, {"to tokenize it": f"{reject.reason}: {remedy}"}
        except PacktoolError as error:
            return [], {"to tokenize it": f"{error.what}: {error.remedy}"}
    return [command], {}


def _begins_as_tokenizer(path: Path) -> bool:
    """Return whether a file of any name begins with the entries that every tokenizer.json has first."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return all(entry in head for entry in (b'"version"', b'"truncation"', b'"padding"', b'"added_tokens"'))


def _tokenizer(path: Path) -> Info:
    """Describe a tokenizer.json, or a directory that holds one.

    Raises:
        DataError: it can't be read.
    """
    from packtool.text.encoding.encoder_choice import choose
    from packtool.text.encoding.load import find
    from packtool.text.encoding.rebuilt import rebuilt_class
    from packtool.text.encoding.special import candidates, marked, sentinels, special

    found = find(path)
    recipe = choose(found)
    try:
        number, text = special("eos", None, found.vocab, found.configs, marked(found.spec))
        eos = f"{text} ({number})"
    except UsageError:
        eos = f"to name: {', '.join(candidates('eos', found.vocab, marked(found.spec))) or 'none is known'}"
    known = sentinels(found.vocab)
    named = [f"{text} ({found.vocab[text]})" for text in known.texts] if known else []
    facts = {
        "model": found.spec["model"].get("type"),
        "vocabulary": found.vocab_size,
        "EOS": eos,
        "encoder": f"{recipe.encoder}: {recipe.why}",
        "to fill in the middle": ", ".join(named) or "no known sentinels",
    }
    rebuilt = rebuilt_class(found.configs)
    if rebuilt:
        facts["in Transformers 5"] = f"{rebuilt} is built anew from the vocabulary: its ids may differ from this file's"
    return Info(
        path,
        "tokenizer",
        "unknown",
        facts,
        next=[f"packtool tokenize CORPUS -o {_free('tokens')} --tokenizer {shlex.quote(str(path))}"],
    )


def _conversations(path: Path) -> dict[str, Any] | None:
    """Count the conversations of a file, and name their fields; None if its first record holds no conversation.

    A large file is not read, so nothing is counted there.
    """
    try:
        files = find_files(path, None)
        held = held_by(files, "text")
        if not held.chats:
            return None
        if path.stat().st_size > MOST_BYTES:
            return {}
        fields, problems = _count(files, held)
    except PacktoolError:
        return None
    counted: dict[str, Any] = dict(fields.most_common())
    if problems:
        counted[_OTHERS] = f"{len(problems):,}, such as: {problems[0]}"
    return counted


def _count(
    files: Sequence[CorpusFile], held: FirstRecord, batches: int | None = None
) -> tuple[Counter[str], list[str]]:
    """Count conversations by the field that holds them, and list what is wrong with others.

    Args:
        batches: to look at in each file; None for all.
    """
    fields: Counter[str] = Counter()
    problems: list[str] = []
    for file in files:
        reader = SpanReader(file, Span(0), Fields(held.field, chat=True, layout=held.layout))
        for batch in islice(reader, batches):
            problems += [reject.reason for reject in batch.rejects]
            for record in batch.documents:
                problem = _problem(record)
                if problem:
                    problems.append(problem)
                else:
                    fields[f"with {held.field or _field_of(record)}"] += 1
    return fields, problems


def _problem(record: Mapping[str, Any]) -> str:
    """Say why no template can render a conversation, or why nothing in it would train; "" if neither is the case."""
    try:
        messages = conversation_of(record).messages
        roles = [known_role(message["role"], number) for number, message in enumerate(messages, 1)]
    except ConversationError as error:
        return str(error)
    return "" if "assistant" in roles else "no message of the assistant, to train on"


def _rendering(command: str, *, skip: bool) -> str:
    """Write a command that renders conversations, and what it does.

    Args:
        skip: some can't be used.
    """
    if skip:
        return f"{command} --on-error skip   renders the others by the chat template of MODEL"
    return f"{command}   renders them by the chat template of MODEL"


def _field_of(record: Mapping[str, Any]) -> str:
    """Name the fields of a record that hold its conversation."""
    first = next(name for name in CONVERSATION if record.get(name) is not None)
    return "prompt and completion" if first == "prompt" else first


def _foreign(path: Path) -> Info:
    files = [child for child in islice(path.rglob("*"), MOST_FILES) if child.is_file()]
    if not files:
        following = [f"packtool tokenize corpus.jsonl -o {shlex.quote(str(path))}"]
        return Info(path, "empty directory", "unknown", next=following)
    kinds = Counter("".join(child.suffixes[-2:]) or "no suffix" for child in files)
    facts = {
        "files": len(files),
        "bytes": sum(child.stat().st_size for child in files),
        "kinds": ", ".join(f"{count} {suffix}" for suffix, count in kinds.most_common(5)),
    }
    advice, problem = _advice(path)
    return Info(path, "not written by packtool", "unknown", facts | problem, next=advice)

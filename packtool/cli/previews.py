"""Print what a dry run found: the input, what would be written, and what is in the way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from packtool.cli.printing import echo, print_json
from packtool.errors import visible
from packtool.support.sizes import plural, show_bytes, show_seconds

if TYPE_CHECKING:
    from packtool.commands.result import Preview
    from packtool.text.corpus.records import CorpusFile
    from packtool.text.tokenizing.estimate import Estimate

_SURE = 0.005
"""Share of an amount that is no error worth saying."""
_FILES_SHOWN = 12
"""Files that a dry run names."""
_FOUND = {
    "nothing": ("which is new", ""),
    "unfinished": ("which holds unfinished work of the same kind", ": --resume continues it"),
    "finished": ("which is finished already", ": --resume does nothing"),
    "other": ("which holds {other}", ": it is refused without --overwrite"),
}
"""What a dry run found at the output, and what becomes of it."""


def show_preview(preview: Preview, *, json: bool) -> None:
    """Print a preview: what would be read and written, and what is in the way."""
    if json:
        print_json(_plain_preview(preview))
        return
    for file in preview.files[:_FILES_SHOWN]:
        echo(_describe_file(file))
    if len(preview.files) > _FILES_SHOWN:
        echo(f"… and {plural(len(preview.files) - _FILES_SHOWN, 'file')} more")
    echo(_describe_preview(preview))


def _plain_preview(preview: Preview) -> dict[str, Any]:
    """Return a preview for JSON; what is not known is left out."""
    plain: dict[str, Any] = {
        "schema_version": 1,
        "command": preview.command,
        "options": preview.options,
        "path": preview.output,
        "found": preview.found,
        "free_bytes": preview.free_bytes,
        **preview.known,
    }
    if preview.written:
        plain["written"] = preview.written
    if preview.estimate:
        known = preview.estimate
        plain["estimate"] = {"cpu_seconds": known.cpu_seconds, "places": known.places, "beginnings": known.beginnings}
        plain["estimate"] |= {"tokens_margin": known.tokens_margin, "documents_margin": known.documents_margin}
    if preview.left_out:
        plain["left_out"] = preview.left_out
    if preview.read:
        plain["read"] = preview.read
    if preview.files:
        plain["inputs"] = list(map(_plain_file, preview.files))
    return plain


def _plain_file(file: CorpusFile) -> dict[str, Any]:
    return {"name": file.name, "format": file.format, "compression": file.compression, "bytes": file.bytes}


def _describe_file(file: CorpusFile) -> str:
    """Describe an input file in one line.

    >>> from packtool.text.corpus.records import CorpusFile
    >>> _describe_file(CorpusFile("a.jsonl", "/corpus/a.jsonl", 4096, "jsonl", "gzip"))
    'a.jsonl: jsonl (gzip), 4.1 kB'
    """
    kind = file.format
    if file.compression:
        kind = f"{file.format} ({file.compression})"
    line = f"{visible(file.name)}: {kind}, {show_bytes(file.bytes)}"
    if file.fault is not None:
        line += f"; {file.fault.what}"
    return line


def _describe_preview(preview: Preview) -> str:
    """Describe a dry run: the command with its options, what it would read, how much it would write, and where.

    >>> from pathlib import Path
    >>> from packtool.commands.result import Preview
    >>> options = {"stores": ["/s"], "strategy": "bfd"}
    >>> print(_describe_preview(Preview("pack", options, Path("/x"), "nothing", {"documents": 1000, "tokens": 4096})))
    ... # doctest: +ELLIPSIS
    packtool pack /s -o /x --strategy bfd
    would read 1,000 documents, 4,096 tokens
    would write to /x, which is new (... free)
    """
    from packtool.options.arguments import command_line

    found, then = _FOUND[preview.found]
    found = found.format(other=other_in_words(preview))
    if preview.overwrite and preview.found != "nothing":
        then = ": --overwrite replaces it"
    lines = [
        command_line(preview.command, preview.options, str(preview.output)),
        f"would read {', '.join(figures_in_words(preview.known))}",
    ]
    if preview.left_out:
        lines.append(f"would leave out {preview.left_out}")
    if preview.read:
        lines.append(preview.read)
    if preview.estimate is not None:
        lines += _estimate_lines(preview.estimate, preview.workers)
    elif preview.written:
        lines.append(f"would write {', '.join(figures_in_words(preview.written))}")
    if preview.unknown:
        lines.append(f"would write what is not known: {preview.unknown}")
    lines.append(f"would write to {preview.output}, {found}{then} ({show_bytes(preview.free_bytes)} free)")
    return "\n".join(lines)


def _estimate_lines(estimate: Estimate, workers: int) -> list[str]:
    """Say what tokenizing will give and take, and how that is known."""
    seconds = estimate.cpu_seconds
    time = show_seconds(seconds)
    if workers > 1:
        time += f" of CPU time, {show_seconds(seconds / workers)} with {plural(workers, 'worker')}"
    lines = [
        f"would write about {plural(estimate.tokens, 'token')}{_within(estimate.tokens_margin)}, "
        f"{plural(estimate.documents, 'document')}{_within(estimate.documents_margin)}, {show_bytes(estimate.bytes)}",
        f"would take about {time}",
    ]
    looked = f"estimated from {plural(estimate.places, 'place')} of the text"
    if estimate.beginnings:
        looked += f"; of {plural(estimate.beginnings, 'file')} only at the beginning, which may not stand for the rest"
    return [*lines, looked]


def _within(margin: float | None) -> str:
    """Say by how much an amount is hardly wrong, in whole per cents; "" if that is not known, or nothing.

    >>> _within(0.123), _within(0.001), _within(None)
    (' (± 13 %)', '', '')
    """
    if margin is None or margin < _SURE:
        return ""
    return f" (± {math.ceil(margin * 100)} %)"


def other_in_words(preview: Preview) -> str:
    """Say what lies at an output that this command did not make with these options."""
    if not preview.differs:
        return "something else"
    return f"what other options made ({preview.differs})"


def figures_in_words(figures: Mapping[str, int]) -> list[str]:
    """Describe amounts in words.

    >>> figures_in_words({"rows": 1000, "bytes": 4096})
    ['1,000 rows', '4.1 kB']
    """
    words = []
    for name, value in figures.items():
        if name == "bytes":
            words.append(show_bytes(value))
        else:
            words.append(plural(value, name.replace("_", " ").removesuffix("s")))
    return words

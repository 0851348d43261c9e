"""Print a row in the terminal: documents in alternating colours; boundaries, repeats, padding and training shown;
prefix, suffix and middle of a text that was rearranged in a colour each."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from packtool.errors import visible
from packtool.report.row import Row, RowPart, RowSegment, Run
from packtool.support.sizes import plural

_COLOURS = ("cyan", "yellow")
_PARTS = {"prefix": "green", "suffix": "blue", "middle": "magenta", "sentinel": "bold"}
_CUT, _CUT_STYLE = "✂", "bold red"
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | dict.fromkeys(range(127, 160), "␡")
"""Control characters as Unicode's pictures of them; DEL and the C1 controls share one."""


def print_row(row: Row, console: Console, *, ids: bool = False) -> None:
    """Print a row, segment by segment: the text of its tokens, or their ids."""
    facts = f" of {row.rows:,} · {plural(row.sequence_length, 'token')}"
    if row.kind == "row" and row.segments[0].kind != "unknown":
        documents = len({segment.document for segment in row.segments} - {None})
        facts += f" · {plural(documents, 'document')}"
    console.print(Text.assemble((f"{row.kind} {row.row:,}", "bold"), facts))
    turn, before = -1, None
    for segment in row.segments:
        if segment.document is not None and segment.document != before:
            turn, before = turn + 1, segment.document
        style = _COLOURS[turn % 2] if segment.kind in ("document", "eos") else ""
        console.print(Text(_heading(segment), f"bold {style or 'dim'}"))
        if segment.kind != "padding":
            console.print(_content(segment, style, ids=ids), soft_wrap=False)
    if row.left_out:
        shown = plural(row.sequence_length - row.left_out, "token")
        console.print(Text(f"What is shown ends after {shown}.", "dim"))
    if row.others:
        numbers = ", ".join(map(str, row.others))
        console.print(Text(f"It is the first of {len(row.others) + 1}; the others: --document {numbers}.", "dim"))
    if row.missing_stores:
        names = ", ".join(map(_pictured, row.missing_stores))
        console.print(Text(f"File and line of each document: give --store for what was packed ({names}).", "dim"))


def _heading(segment: RowSegment) -> str:
    tokens = plural(len(segment.tokens), "token")
    if segment.kind == "padding":
        return f"░░ padding · {tokens}"
    if segment.kind == "eos":
        return "── EOS that the strategy inserted"
    if segment.kind == "unknown":
        return f"── boundaries unknown (--no-segments) · {tokens}"
    assert segment.start is not None
    assert segment.document_length is not None
    end = _end(segment)
    parts = [f"── document {segment.document:,}"]
    if segment.source:
        parts.append(f"source {segment.source}, its document {segment.number:,}")
    if segment.origin is not None:
        parts.append(_pictured(segment.origin))
    if segment.id is not None:
        parts.append(f"id {_pictured(segment.id)}")
    for name, value in segment.columns.items():
        if value is not None:
            parts.append(f"{_pictured(name)} {_pictured(str(value))}")
    if segment.start == 0 and end == segment.document_length:
        parts.append(f"whole, {tokens}")
    else:
        parts.append(f"tokens {segment.start:,}–{end - 1:,} of {segment.document_length:,}")
        parts.append(_where_cut(segment.start > 0, end < segment.document_length))
    if segment.runs:
        parts.append(f"{sum(len(run.tokens) for run in segment.runs if run.trained):,} trained on")
    if segment.repeated:
        parts.append(f"first {segment.repeated:,} repeated")
    return " · ".join(parts)


def _where_cut(before: bool, after: bool) -> str:
    if before and after:
        return "cut at both ends"
    return "cut at its start" if before else "cut at its end"


def _content(segment: RowSegment, style: str, *, ids: bool) -> Text:
    text = Text()
    repeated, new, gap = segment.repeated_text or "", segment.text or "", ""
    if ids or segment.text is None:
        shown = list(map(str, segment.tokens))
        repeated, new, gap = " ".join(shown[: segment.repeated]), " ".join(shown[segment.repeated :]), " "
    if segment.start:
        text.append(f"{_CUT} ", _CUT_STYLE)
    if repeated:
        text.append(_pictured(repeated) + gap, f"{style} dim italic")
    for run in segment.runs:
        weight = "bold underline" if run.trained else "dim"
        text.append(_words(run, ids=ids), f"{style} {weight}")
    for part in segment.parts:
        text.append(_words(part, ids=ids), _PARTS.get(part.role, style))
    if not segment.runs and not segment.parts:
        text.append(_pictured(new), style)
    if segment.document_length is not None and _end(segment) < segment.document_length:
        text.append(f" {_CUT}", _CUT_STYLE)
    return text


def _words(tokens: Run | RowPart, *, ids: bool) -> str:
    """Return the text of consecutive tokens, or their ids."""
    if ids or tokens.text is None:
        return " ".join(map(str, tokens.tokens)) + " "
    return _pictured(tokens.text)


def _end(segment: RowSegment) -> int:
    """Return the document's token after the segment's last."""
    return (segment.start or 0) + len(segment.tokens)


def _pictured(text: str) -> str:
    """Show control characters as pictures, so that a document can't steer the terminal; others that do, escaped.

    >>> _pictured("a\\x1b[31mb\\u202e\\n")
    'a␛[31mb\\\\u202e\\n'
    """
    return visible(text.translate(_PICTURES), keep="\n\t")

"""One row in the terminal: documents in alternating colours, boundaries, repeats and padding visible."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from packtool.report.figures import count
from packtool.report.row import Row, RowSegment

_COLOURS = ("cyan", "yellow")


def print_row(row: Row, console: Console) -> None:
    """Print a row, segment by segment."""
    documents = len({segment.document for segment in row.segments if segment.document is not None})
    plural = "" if documents == 1 else "s"
    known = f" · {count(documents)} document{plural}" if row.segments[0].kind != "unknown" else ""
    facts = f" of {count(row.rows)} · {count(row.sequence_length)} tokens{known}"
    console.print(Text.assemble((f"row {count(row.row)}", "bold"), facts))
    turn, before = -1, None
    for segment in row.segments:
        if segment.document is not None and segment.document != before:
            turn, before = turn + 1, segment.document
        style = _COLOURS[turn % 2] if segment.kind in ("document", "eos") else ""
        console.print(Text(_heading(segment), f"bold {style}" if style else "bold dim"))
        if segment.kind != "padding":
            console.print(_content(segment, style), soft_wrap=False)


def _heading(segment: RowSegment) -> str:
    tokens = f"{count(len(segment.tokens))} token" + ("" if len(segment.tokens) == 1 else "s")
    if segment.kind == "padding":
        return f"░░ padding · {tokens}"
    if segment.kind == "eos":
        return "── EOS that the strategy inserted"
    if segment.kind == "unknown":
        return f"── boundaries unknown (--no-segments) · {tokens}"
    assert segment.start is not None
    assert segment.document_length is not None
    end = segment.start + len(segment.tokens)
    parts = [f"── document {count(segment.document)}"]
    if segment.source:
        parts.append(f"source {segment.source}, its document {count(segment.number)}")
    if segment.origin is not None:
        parts.append(visible(segment.origin))
    if segment.id is not None:
        parts.append(f"id {visible(segment.id)}")
    if segment.start == 0 and end == segment.document_length:
        parts.append(f"whole, {tokens}")
    else:
        parts.append(f"tokens {count(segment.start)}–{count(end - 1)} of {count(segment.document_length)}")
        if segment.start and end < segment.document_length:
            parts.append("cut at both ends")
        else:
            parts.append("cut at its start" if segment.start else "cut at its end")
    if segment.repeated:
        parts.append(f"first {count(segment.repeated)} repeated")
    return " · ".join(parts)


def _content(segment: RowSegment, style: str) -> Text:
    text = Text()
    if segment.text is None:
        ids = list(map(str, segment.tokens))
        text.append(" ".join(ids[: segment.repeated]), f"{style} dim italic")
        text.append((" " if segment.repeated else "") + " ".join(ids[segment.repeated :]), style)
        return text
    if segment.repeated_text:
        text.append(visible(segment.repeated_text), f"{style} dim italic")
    text.append(visible(segment.text), style)
    return text


def visible(text: str) -> str:
    """Control characters as pictures, so that a document can't steer the terminal.

    >>> visible("a\\x1b[31mb\\n")
    'a␛[31mb\\n'
    """
    return "".join(
        chr(0x2400 + ord(c)) if ord(c) < 32 and c not in "\n\t" else "␡" if 127 <= ord(c) < 160 else c for c in text
    )

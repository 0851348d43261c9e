"""One row in the terminal: documents in alternating colours, boundaries, repeats and padding visible."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from packtool.report.figures import count
from packtool.report.row import Piece, Row

_COLOURS = ("cyan", "yellow")


def print_row(row: Row, console: Console) -> None:
    """Print a row, piece by piece."""
    documents = len({piece.document for piece in row.pieces if piece.document is not None})
    plural = "" if documents == 1 else "s"
    known = f" · {count(documents)} document{plural}" if row.pieces[0].kind != "unknown" else ""
    facts = f" of {count(row.rows)} · {count(row.sequence_length)} tokens{known}"
    console.print(Text.assemble((f"row {count(row.row)}", "bold"), facts))
    turn, before = -1, None
    for piece in row.pieces:
        if piece.document is not None and piece.document != before:
            turn, before = turn + 1, piece.document
        style = _COLOURS[turn % 2] if piece.kind in ("document", "eos") else ""
        console.print(Text(_heading(piece), f"bold {style}" if style else "bold dim"))
        if piece.kind != "padding":
            console.print(_content(piece, style), soft_wrap=False)


def _heading(piece: Piece) -> str:
    tokens = f"{count(len(piece.tokens))} token" + ("" if len(piece.tokens) == 1 else "s")
    if piece.kind == "padding":
        return f"░░ padding · {tokens}"
    if piece.kind == "eos":
        return "── EOS that the strategy inserted"
    if piece.kind == "unknown":
        return f"── boundaries unknown (--no-segments) · {tokens}"
    assert piece.start is not None
    assert piece.document_length is not None
    end = piece.start + len(piece.tokens)
    parts = [f"── document {count(piece.document)}"]
    if piece.source:
        parts.append(f"source {piece.source}, its document {count(piece.number)}")
    if piece.origin is not None:
        parts.append(visible(piece.origin))
    if piece.start == 0 and end == piece.document_length:
        parts.append(f"whole, {tokens}")
    else:
        parts.append(f"tokens {count(piece.start)}–{count(end - 1)} of {count(piece.document_length)}")
        if piece.start and end < piece.document_length:
            parts.append("cut at both ends")
        else:
            parts.append("cut at its start" if piece.start else "cut at its end")
    if piece.repeated:
        parts.append(f"first {count(piece.repeated)} repeated")
    return " · ".join(parts)


def _content(piece: Piece, style: str) -> Text:
    text = Text()
    if piece.text is None:
        ids = list(map(str, piece.tokens))
        text.append(" ".join(ids[: piece.repeated]), f"{style} dim italic")
        text.append((" " if piece.repeated else "") + " ".join(ids[piece.repeated :]), style)
        return text
    if piece.repeated_text:
        text.append(visible(piece.repeated_text), f"{style} dim italic")
    text.append(visible(piece.text), style)
    return text


def visible(text: str) -> str:
    """Control characters as pictures, so that a document can't steer the terminal.

    >>> visible("a\\x1b[31mb\\n")
    'a␛[31mb\\n'
    """
    return "".join(
        chr(0x2400 + ord(c)) if ord(c) < 32 and c not in "\n\t" else "␡" if 127 <= ord(c) < 160 else c for c in text
    )

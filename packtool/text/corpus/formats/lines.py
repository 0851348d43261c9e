"""Plain text: one document a line."""

from __future__ import annotations

from packtool.text.corpus.text import BY_LINES, read_lines
from packtool.text.corpus.text_format import TextFormat

FORMAT = TextFormat(name="lines", read=read_lines, division=BY_LINES)

"""Plain text: one document a file."""

from __future__ import annotations

from packtool.text.corpus.text import read_file
from packtool.text.corpus.text_format import TextFormat

FORMAT = TextFormat(name="text", other="lines", suffixes=(".txt",), read=read_file, whole=True)

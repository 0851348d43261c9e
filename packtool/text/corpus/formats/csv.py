"""CSV: values between commas, quoted as in RFC 4180."""

from __future__ import annotations

from packtool.text.corpus.delimited import delimited

FORMAT = delimited("csv", (".csv",), delimiter=",", strict=True)

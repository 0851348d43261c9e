"""TSV: values between tabs; a quote is a character like any other."""

from __future__ import annotations

import csv

from packtool.text.corpus.delimited import delimited

FORMAT = delimited("tsv", (".tsv", ".tab"), delimiter="\t", quoting=csv.QUOTE_NONE)

"""Reading documents: finding files, planning fixed blocks, decompressing, parsing, filtering. Knows no tokens."""

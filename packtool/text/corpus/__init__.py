"""Read documents: find files, plan fixed blocks, decompress, parse, filter. Knows no tokens."""

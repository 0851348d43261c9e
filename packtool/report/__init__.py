"""Reports: measurements as typed structures, shown in the terminal or as a page. See docs/report-schema.md.

tallies, ledger, lengths ─counted_report─▶ PackedReport ─┬─verdict (in words)─┬─▶ terminal
lengths ─compare─────────────────────────▶ Comparison ───┴─tables─────────────┴─▶ page (and charts)
"""

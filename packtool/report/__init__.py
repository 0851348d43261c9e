"""Reports: measurements as typed structures, shown in the terminal or as a page. See docs/report-schema.md.

tallies, ledger, lengths ─packed.report_of_rows─▶ PackedReport ─┬─verdict (in words)─┬─▶ terminal
lengths ─packtool.report.compare.compare─────────────▶ Comparison ───┴─tables─────────────┴─▶ page (and charts)
"""

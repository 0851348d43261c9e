"""Reports: measurements as typed structures, shown in the terminal or as a page. See docs/report-schema.md.

tallies, ledger, lengths ─packed.report_of_rows─▶ PackedReport ─┬─verdict (in words)─┬─▶ terminal
trials of strategies ─compared.comparison_of──▶ Comparison ─────┴─tables─────────────┴─▶ page (and charts)
"""

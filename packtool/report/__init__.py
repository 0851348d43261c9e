"""Reports: one JSON document of what was measured, shown in the terminal or as a page. See docs/report-schema.md.

tallies, ledger, lengths ─document.build─▶ report (plain JSON types) ─terminal.print_report─▶ terminal
                                                                     ─html.page─▶ one self-contained page
"""

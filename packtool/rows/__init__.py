"""Rows as what is stored says they are, for whoever writes them and whoever reads them. Files in the order of the flow:

    plan, order ─layout─▶ which units each row holds, and its segments
    packed dataset ─stored_plan─▶ the plan of rows that lie on disk, for another order of them
    segments ─gather─▶ their tokens, out of token stores; for datasets without tokens, stored_tokens
    token stores, packed dataset ─unit_source─▶ units with their tokens

`packtool.writing` writes what comes of them, `packtool.reading` gives it to a trainer.
"""

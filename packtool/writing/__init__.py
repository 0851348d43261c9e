"""From a plan and an order to shards on disk. Files in the order of the flow:

    lengths ─planning─▶ plan: in memory, or on disk (array_files)
    plan, order, token stores or a packed dataset ─rows─▶ units with their tokens
                              │
          fits in memory? ────┤ yes: planned_rows                         each token moves once
                              │ no:  two_passes, through scratch files    atoms to partitions by key, then sorted
                              ▼
    rows in their final order, batch by batch ─shards─▶ the shards of every bucket

`memory` decides between the two ways; an engine runs the tasks of either, and where its workers share no memory they
map what they need. `pack` and every `shuffle` call `shards`.
"""

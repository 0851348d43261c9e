"""From a plan and an order to shards on disk. Files in the order of the flow:

    lengths ─planning─▶ plan: in memory, or on disk (array_files)
    plan, order ─layout─▶ which units each row holds, and its segments
                              │
    token stores, packed dataset ─source─▶ units with their tokens      StoreSource   a plan's units, by gather
                              │                                         PackedSource  a dataset's units (stored_plan)
          fits in memory? ────┤ yes: planned_rows                         each token moves once
                              │ no:  two_passes, through scratch files    atoms to partitions by key, then sorted
                              ▼
    rows in their final order, batch by batch ─shards─▶ the shards of every bucket

`memory` decides between the two ways; an engine runs the tasks of either, and where its workers share no memory they
map what they need. `pack` and every `shuffle` call `shards`.
"""

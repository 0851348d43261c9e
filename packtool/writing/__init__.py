"""From a plan and an order to shards on disk. Files in the order of the flow:

    lengths ─planning─▶ plan: in memory, or on disk (sharing)
    plan, order ─layout─▶ which units each row holds, and its segments
                              │
    token stores, packed dataset ─source─▶ units with their tokens      store_source  a plan's units, by gather
                              │                                         packed_source a dataset's units (stored_plan)
          fits in memory? ────┤ yes ──────────────▶ rows.OrderedRows           each token moves once
                              │ no: first_pass ─scratch─▶ second_pass          atoms to partitions by key, then sorted
                              ▼
    rows in their final order, batch by batch ─shards─▶ shards of one bucket ─buckets─▶ all of them

`memory` decides between the two ways; an engine runs the tasks of either, and where its workers share no memory they
find on disk what they need (`sharing`). `pack` and every `shuffle` call `buckets`.
"""

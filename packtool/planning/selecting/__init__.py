"""Select documents of stores, and how often they are packed: mixtures, hold-outs, shards, copies. Touches no files."""

"""Which documents of which stores are packed, and how often: mixtures, hold-outs, shards, copies. Touches no files."""

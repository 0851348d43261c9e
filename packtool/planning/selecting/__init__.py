"""Select documents of stores, and how often to pack each: mixtures, hold-outs, shards, copies. Touches no files."""

"""Turn a corpus into a token store: block by block, each document filtered, encoded and accounted for."""

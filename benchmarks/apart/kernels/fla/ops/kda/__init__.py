"""Stand-in: a package that Transformers looks for."""

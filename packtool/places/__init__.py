"""Where datasets lie: in a directory, or an object store, perhaps with copies on a local disk. Each is a `Place`."""

"""Where datasets lie: directories, and object stores, perhaps with copies on a local disk. All of them are `Place`s."""

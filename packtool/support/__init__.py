"""What commands share and no other package has a better place for: sizes, progress, clocks, temporary directories."""

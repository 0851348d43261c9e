"""Small tools that commands share: sizes, progress, clocks, temporary directories."""

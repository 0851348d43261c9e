"""What packtool leaves on disk: token stores and packed datasets, readable by NumPy alone. See docs/format.md."""

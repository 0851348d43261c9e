"""Token stores and packed datasets on disk, readable by NumPy alone. See docs/format.md."""

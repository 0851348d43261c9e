"""Planning: lengths in, rows out, in NumPy alone. Nothing here opens a file or moves a token.

lengths ─selecting─▶ documents ─packing─▶ plans ─shuffling─▶ orders          metrics count what rows hold
"""

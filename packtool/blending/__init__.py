"""Blends: several datasets while training, by weights that change on a schedule."""

"""The version of packtool."""

__version__ = "0.1.0"

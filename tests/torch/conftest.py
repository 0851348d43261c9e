"""Tests that need PyTorch, and programs that they run: not looked at where it is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = ["context.py"] if find_spec("torch") else ["*"]  # it imports code of a page

"""Headless Chromium: what it prints of a page, and what stands on the page's console."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest


def chromium() -> str:
    """The browser's path."""
    found = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail("Chromium is not installed; make test-browser installs it")
    return found


def open_page(tmp_path: Path, address: str, *options: str) -> tuple[str, list[str]]:
    """What the browser prints, and the messages on the page's console."""
    command = [
        *(chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", *options, address),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)

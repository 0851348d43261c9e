"""The Python of the pages passes the type checker, as a reader's editor shows it: each page as one program."""

import subprocess
import sys
from pathlib import Path

from tests.test_docs import PAGES, ROOT, blocks


def test_the_python_of_pages_has_the_types_that_packtool_declares(tmp_path: Path) -> None:
    for page in PAGES:
        code = [text for language, name, text in blocks(page) if language == "python" or str(name).endswith(".py")]
        (tmp_path / f"{page.stem.replace('-', '_').lower()}_page.py").write_text("\n".join(code), encoding="utf-8")
    options = ["--config-file=", "--python-version=3.11", "--ignore-missing-imports", "--check-untyped-defs"]
    command = [sys.executable, "-m", "mypy", *options, "--cache-dir", tmp_path, *sorted(tmp_path.glob("*.py"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout

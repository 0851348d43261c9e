"""The version of packtool, and which build of it this is."""

import functools
from pathlib import Path

__version__ = "0.1.0"


@functools.cache
def build() -> str:
    """Return the version with a digest of the package's source: two commits may have one version.

    >>> build().startswith(f"{__version__} of source ")
    True
    """
    import hashlib  # --help needs none of it

    package = Path(__file__).parents[1]
    hashed = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        hashed.update(f"{path.relative_to(package).as_posix()} {len(source)}\n".encode())
        hashed.update(source)
    return f"{__version__} of source {hashed.hexdigest()[:12]}"

"""Parse URLs of object stores. Nothing is loaded for that: options are checked with these before anything is read."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from packtool.errors import UsageError

SCHEMES = ("s3", "gs")
"""Stores that datasets are read from and written to."""


def is_remote(location: str) -> bool:
    """Return whether a location is a URL of an object store rather than a local path.

    >>> is_remote("s3://bucket/a.jsonl"), is_remote("a.jsonl")
    (True, False)
    """
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme.isalnum()


def as_typed(location: object) -> str:
    """Restore a URL that lost a slash by becoming a `Path`.

    >>> from pathlib import Path
    >>> as_typed(Path("s3://bucket/packed")), as_typed("a/b")
    ('s3://bucket/packed', 'a/b')
    """
    return re.sub(rf"^({'|'.join(SCHEMES)}|hf):/(?=[^/])", r"\1://", str(location))


def require_no_secret(url: str) -> None:
    """Refuse credentials in a URL, without repeating them: they would appear in logs and messages."""
    scheme, _, rest = url.partition("://")
    user, at, host = rest.partition("/")[0].rpartition("@")
    if at and (scheme == "s3" or ":" in user):
        raise UsageError(
            "secret-in-url",
            "the URL holds credentials, which would appear in logs and messages",
            remedy="leave them out; they are read from the environment, or the files of the store's client",
            where=f"{scheme}://…@{host}",
        )


def dataset_url(given: str) -> str:
    """Return the URL of a dataset without a trailing slash.

    Raises:
        UsageError: the store can't hold datasets, bucket or name is missing, or there is more than these.

    >>> dataset_url("s3://bucket/a/packed/")
    's3://bucket/a/packed'
    """
    require_no_secret(given)
    parts = urlsplit(given)
    names = parts.path.strip("/").split("/")
    if parts.scheme not in SCHEMES:
        what = f"datasets can't lie in {parts.scheme}://"
        remedy = f"give a local directory, or a URL that begins with {' or '.join(f'{s}://' for s in SCHEMES)}"
    elif parts.query or parts.fragment or re.search(r"[?#%*\[\]\x00-\x1f]", given):
        what = "the URL of a dataset holds ?, #, %, * or brackets"
        remedy = "give bucket and name alone; endpoint and region are set in the environment"
    elif not parts.netloc or not names[0] or {"", ".", ".."} & set(names):
        what, remedy = "not the URL of a dataset", "write it like s3://bucket/name"
    else:
        return f"{parts.scheme}://{parts.netloc}/{'/'.join(names)}"
    raise UsageError("unsupported-store", what, remedy=remedy, where=given)

"""Parse URLs of object stores. Nothing is loaded for that: options are checked with these before anything is read."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from packtool.errors import UsageError

SCHEMES = ("s3", "gs")
"""Stores that datasets are read from and written to."""
KNOWN = (*SCHEMES, "hf", "az", "https", "abfs", "abfss", "adl", "azure", "http", "s3a", "file", "memory")
"""Stores that texts are read from; from the sixth on, other names of the same, and those of tests."""
LIKE_S3 = ("oss", "r2", "cos", "cosn", "b2", "obs", "minio", "tos")
"""Stores that answer as S3 does, too, by the names that other tools give them."""
_URL = re.compile(
    r"\s*(?:[\w+.-]+::)*(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?P<authority>[^/?#\\]*)(?P<rest>.*)", re.DOTALL
)
"""A URL, also one that lost a slash by becoming a `Path`, or that stands behind names of caches, as fsspec has them."""
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")
_QUERY = re.compile(r"[?&][\w.~%+-]+=")
"""A parameter of a query. In the URL of a bucket a question mark is a pattern."""
_WITH_CONTAINER = ("abfs", "abfss")


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


def require_no_secret(location: str) -> None:
    """Refuse credentials in a URL, without repeating them: they would appear in logs, messages and `run.json`.

    Nothing before an @ is needed to name a file, but for the container of abfs. A password may hold a slash, so what
    looks like a port must be one. Signatures are passed in a query.

    >>> require_no_secret("s3://bucket/a@b.jsonl"), require_no_secret("abfs://container@account/a.jsonl")
    (None, None)
    >>> require_no_secret("https://TOKEN@host/a.jsonl")
    Traceback (most recent call last):
    packtool.errors.UsageError: https://… holds credentials, which would appear in logs, messages and run.json. \
Leave them out; they are read from the environment, or the files of the store's client.
    """
    match = _URL.fullmatch(location)
    if match is None:
        return
    scheme = match["scheme"].lower()
    user, at, host = unquote(match["authority"]).rpartition("@")
    plain = not at or (scheme in _WITH_CONTAINER and not set(user) & set(":%"))
    signed = scheme not in SCHEMES and _QUERY.search(match["rest"]) is not None
    if plain and not signed and _HOST.fullmatch(host):
        return
    what = f"{scheme}://… holds credentials, which would appear in logs, messages and run.json"
    remedy = "leave them out; they are read from the environment, or the files of the store's client"
    raise UsageError("secret-in-url", what, remedy=remedy)


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
    plain = re.split(r"[?#]", given, maxsplit=1)[0]  # a query may hold a signature
    raise UsageError("unsupported-store", what, remedy=remedy, where=plain)

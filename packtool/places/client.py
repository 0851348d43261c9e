"""Clients of object stores: made from what the environment and the AWS files say, patient with what passes."""

from __future__ import annotations

import configparser
import os
import random
import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from packtool.errors import DataError, PacktoolError
from packtool.places.url import require_no_secret

Result = TypeVar("Result")

DELAYS = (1.0, 4.0)
"""Seconds, about, between the attempts at a request."""
CLIENT_ATTEMPTS = 5
"""How often the client of S3 tries each of these, with a delay that doubles."""
CONNECT_SECONDS = 10
GOOGLE_SECONDS = 15
"""How long the client of Google's store tries each; without a limit, minutes."""

_DENIED = re.compile(
    "ACCESS_DENIED|SIGNATURE_DOES_NOT_MATCH|INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN_ID|EXPIRED_TOKEN|INVALID_TOKEN"
    "|UNRECOGNIZED_CLIENT|MISSING_AUTHENTICATION_TOKEN|REQUEST_EXPIRED|HTTP status 40[13]|PERMISSION_DENIED"
    "|UNAUTHENTICATED|create a OAuth2 access token|Client error '40[13]"
)
_FINAL = re.compile(
    "NO_SUCH_BUCKET|NO_SUCH_KEY|RESOURCE_NOT_FOUND|INVALID_BUCKET|VALIDATION|INVALID_PARAMETER|MALFORMED"
    r"|HTTP status 4(?!08|29)\d\d|Client error '4(?!08|29)\d\d|Not a regular file"
)
_PASSES = re.compile("SLOW_DOWN|THROTTLING|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT|HTTP status 5")

_clients: dict[tuple[int, str], Any] = {}
"""One for each process and bucket: making one takes a connection, or several."""


def filesystem(location: str) -> tuple[Any, str]:
    """The `pyarrow.fs` file system of a URL, and the path in it.

    Raises:
        DataError: no such file system, or its client is missing.
        UsageError: the URL holds credentials.
    """
    from pyarrow import fs

    from packtool.places.foreign import translated

    require_no_secret(location)
    base, path = _in_store(location)
    known = os.getpid(), base
    if known in _clients:
        return _clients[known], path
    try:
        if base.startswith("s3://"):
            store, found = _s3(base.removeprefix("s3://")), path
        elif base.startswith("gs://"):
            store, found = fs.GcsFileSystem(retry_time_limit=timedelta(seconds=GOOGLE_SECONDS)), path
        else:
            store, found = fs.FileSystem.from_uri(location)
            store = translated(store)
    except PacktoolError:
        raise
    except Exception as error:
        raise DataError(
            "no-such-store",
            f"can't open this object store ({_reason(error)})",
            remedy="check the URL, the credentials and the network; hf:// needs the package huggingface_hub",
            where=location,
        ) from None
    if base and str(found) == path:
        _clients[known] = store
    return store, str(found)


def _in_store(location: str) -> tuple[str, str]:
    """What files of one client have in common, and the path in it; "" where only the client can tell.

    >>> _in_store("s3://bucket/a/b.jsonl"), _in_store("s3://bucket/a%20b?region=x")
    (('s3://bucket', 'bucket/a/b.jsonl'), ('', ''))
    """
    scheme, _, rest = location.partition("://")
    if not re.fullmatch(r"[\w./=+,-]+", rest, re.ASCII):
        return "", ""
    host = rest.partition("/")[0]
    return f"{scheme}://{host}", rest


def _s3(bucket: str) -> Any:
    """A client for one bucket; credentials are its own affair.

    Writes are not made in the background: their data would pile up in memory where the store is slower than the disk.
    """
    from pyarrow import fs

    endpoint = setting("endpoint_url", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = setting("region", "AWS_REGION", "AWS_DEFAULT_REGION")
    options: dict[str, Any] = {"region": region} if region else {}
    if endpoint:
        scheme, separator, host = endpoint.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme if separator else "https"}
    elif not region:
        options["region"] = fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        **options,
        background_writes=False,
        allow_delayed_open=True,
        connect_timeout=CONNECT_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=CLIENT_ATTEMPTS),
    )


def setting(name: str, *variables: str) -> str | None:
    """What the environment says, else the profile in the AWS configuration file.

    Args:
        name: of the setting in the file.
        variables: of the environment, the first that is set counts.
    """
    for variable in variables:
        if value := os.environ.get(variable):
            return value
    profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    file = Path(os.environ.get("AWS_CONFIG_FILE") or Path.home() / ".aws" / "config")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(file, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return None  # the client itself has the last word on its file
    section = profile if profile == "default" else f"profile {profile}"
    return parser.get(section, name, fallback=None) or None


def patiently(request: Callable[[], Result], url: str) -> Result:
    """What a request gives, after several attempts if need be. It must not matter whether it is made twice.

    Raises:
        FileNotFoundError: there is no such object.
        DataError: it failed for good, or too often.
    """
    for delay in DELAYS:
        try:
            return request()
        except FileNotFoundError:
            raise
        except OSError as error:
            if not passes(error):
                raise failure(error, url) from None
        time.sleep(delay * random.uniform(0.5, 1))
    try:
        return request()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise failure(error, url) from None


def passes(error: OSError) -> bool:
    """Whether another attempt may succeed.

    >>> passes(OSError("AWS Error SLOW_DOWN during PutObject")), passes(OSError("AWS Error ACCESS_DENIED"))
    (True, False)
    """
    text = str(error)
    return bool(_PASSES.search(text)) or not (_DENIED.search(text) or _FINAL.search(text))


def failure(error: OSError, url: str) -> DataError:
    """A refusal of the store in our words."""
    if _DENIED.search(str(error)):
        return DataError(
            "store-denied",
            f"the store refuses access ({_reason(error)})",
            remedy="check the credentials and the profile in the environment or the AWS files, and what they may do",
            where=url,
        )
    return DataError(
        "store-unreachable",
        f"the store failed ({_reason(error)})",
        remedy="check the URL, the endpoint and the network, then run the command again",
        where=url,
    )


def _reason(error: Exception) -> str:
    """The first line of what a client says, without what identifies the request or could be a secret."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    text = re.sub(r"\s*\(Request ID: [^)]*\)|\s*error_info=.*", "", text).rstrip(". ")
    for variable in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"):
        if len(value := os.environ.get(variable, "")) >= 4:
            text = text.replace(value, "…")
    return text

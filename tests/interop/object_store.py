"""An object store on this machine, SeaweedFS with the protocol of S3; and a proxy before it that makes it fail."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEY, SECRET = "packtool-test", "Zk3-a-secret-of-this-test"
PUBLIC = "public"
"""A bucket that everybody may read and write."""
LARGE = ("--strategy", "bfd", "-L", "1024", "--shard-tokens", "524288", "--quiet")
PACK = ("--strategy", "bfd", "-L", "64", "--shard-tokens", "16384", "--quiet")


def environment(endpoint: str, *, secret: str = SECRET) -> dict[str, str]:
    """Variables that lead the client of S3 to an endpoint."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextmanager
def object_store(directory: Path) -> Iterator[str]:
    """The endpoint of a store with nothing in it, which lies in a directory."""
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", "seaweedfs"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
    )
    weed = Path(made.stdout.strip()).parent / "weed"
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "test", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}
    public = {"name": "anonymous", "actions": [f"{action}:{PUBLIC}" for action in actions]}
    (directory / "s3.json").write_text(json.dumps({"identities": [identity, public]}))
    (directory / "data").mkdir()
    ports = dict(zip(("s3.port", "master.port", "volume.port", "filer.port"), free_ports(4), strict=True))
    command = [
        *(str(weed), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={directory / 'data'}", "-s3"),
        *(f"-s3.config={directory / 's3.json'}", "-master.telemetry=false", "-volume.max=400"),
        *("-s3.port.lance=0", "-s3.port.iceberg=0", "-master.volumeSizeLimitMB=64"),
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    endpoint = f"http://127.0.0.1:{ports['s3.port']}"
    with (directory / "log").open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(endpoint, running)
        yield endpoint
    finally:
        running.terminate()
        running.wait()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, nor on those 10,000 above, which the server takes, too."""
    found: list[int] = []
    while len(found) < count:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port > 55000 or port in found:
                continue
            try:
                other.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            found.append(port)
    return found


def wait_for(asked: str | urllib.request.Request, running: subprocess.Popen[bytes]) -> None:
    """Ask a server until it answers, or says that it would answer others."""
    for _ in range(600):
        assert running.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(asked, timeout=1).close()
        except urllib.error.HTTPError as error:
            if error.code == 403:
                time.sleep(1)  # the gate is open before what lies behind it
                return
            time.sleep(0.1)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server does not answer")


class Client:
    """The store as a test sees it.

    Args:
        endpoint: of the store.
    """

    def __init__(self, endpoint: str) -> None:
        from pyarrow import fs

        scheme, _, host = endpoint.partition("://")
        self.fs = fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            scheme=scheme,
            endpoint_override=host,
            allow_bucket_creation=True,
        )

    def bucket(self, name: str) -> None:
        """Make a bucket."""
        self.fs.create_dir(name)

    def put(self, path: str, data: bytes) -> None:
        """Make an object."""
        with self.fs.open_output_stream(path, compression=None) as out:
            out.write(data)

    def get(self, path: str) -> bytes:
        """What an object holds."""
        with self.fs.open_input_file(path) as file:
            data: bytes = file.read()
        return data

    def names(self, path: str) -> list[str]:
        """Every object below a path."""
        from pyarrow import fs

        found = self.fs.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        return sorted(each.path[len(path) + 1 :] for each in found if each.type == fs.FileType.File)


def packtool(*words: str | Path, env: dict[str, str], timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [sys.executable, "-m", "packtool", *map(str, words)]
    return subprocess.run(
        command, check=False, env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, timeout=timeout
    )


def good(*words: str | Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed."""
    done = packtool(*words, env=env)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    return done


def require_same(store: Client, path: str, directory: Path) -> None:
    """The objects are the files, but for what may differ from run to run."""
    files = sorted(str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file())
    assert store.names(path) == files
    for name in files:
        if name != "run.json":
            assert store.get(f"{path}/{name}") == (directory / name).read_bytes(), name


def put(store: Client, directory: Path, path: str) -> None:
    """Make the files of a directory objects."""
    for file in directory.rglob("*"):
        if file.is_file():
            store.put(f"{path}/{file.relative_to(directory)}", file.read_bytes())


def left(env: dict[str, str]) -> list[Path]:
    """What is left in the cache."""
    return [file for file in Path(env["XDG_CACHE_HOME"]).rglob("*") if file.is_file()]


def files_below(directory: str | Path) -> Iterator[tuple[str, int]]:
    """Names and bytes of all files below a directory, some of which come and go."""
    for place, _, files in os.walk(directory):
        for file in files:
            with suppress(OSError):
                yield file, (Path(place) / file).stat().st_size


Fault = Callable[[str, str, int], "int | float | None"]
"""What to do with a request: method, path and number. A status answers at once, a negative one after the store has done
what was asked, as if its answer had been lost; a float waits so many seconds."""
Headers = Callable[[dict[str, str]], dict[str, str]]


@contextmanager
def failing(
    endpoint: str, fault: Fault, *, to_store: Headers = dict, to_client: Headers = dict
) -> Iterator[tuple[str, list[str]]]:
    """The endpoint of a proxy before a store, and the requests that came.

    Args:
        to_store, to_client: change the headers on their way.
    """
    target = endpoint.partition("://")[2]
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            pass

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "") == "chunked":
                return b"".join(self._chunks())
            length = int(self.headers.get("Content-Length") or 0)
            return self.rfile.read(length) if length else b""

        def _chunks(self) -> Iterator[bytes]:
            """A body whose length is not known at first, as it came."""
            size = 1
            while size:
                line = self.rfile.readline()
                size = int(line.partition(b";")[0], 16)
                yield line + (self.rfile.read(size + 2) if size else b"")
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                yield line
            yield b"\r\n"

        def _pass(self) -> None:
            body = self._body()
            seen.append(f"{self.command} {self.path}")
            what = fault(self.command, self.path, len(seen))
            if isinstance(what, float):
                time.sleep(what)
            elif what is not None and what > 0:
                self._fail(what)
                return
            connection = HTTPConnection(target, timeout=60)
            with closing(connection):
                self._forward(connection, body, lost=0 if what is None or isinstance(what, float) else -what)

        def _fail(self, status: int) -> None:
            self._answer(status, {}, b"" if self.command == "HEAD" else _ERROR)

        def _forward(self, connection: HTTPConnection, body: bytes, lost: int) -> None:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in to_store(dict(self.headers.items())).items():  # Host stays as it was signed
                connection.putheader(name, value)
            connection.endheaders(body)
            reply = connection.getresponse()
            data = reply.read()
            if lost:
                self._fail(lost)
                return
            self._answer(reply.status, to_client(dict(reply.getheaders())), data)

        def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                    self.send_header(name, value)
            length = headers.get("Content-Length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *what: object) -> None:
            """Whoever asked was killed."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_ERROR = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"

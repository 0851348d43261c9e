"""A server that answers what the client of the Hugging Face Hub asks of a dataset repository: its files, by ranges."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0" * 40
NAME = "lab/corpus"


@dataclass
class Hub:
    """A running server.

    Attributes:
        endpoint: its URL.
        failures: what happens to the next requests for data, the last first: an HTTP status, or 0 to cut the
            connection within the answer.
        asked: paths of the requests for data.
    """

    endpoint: str
    failures: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@contextmanager
def serve(root: Path) -> Iterator[Hub]:
    """The files of a directory as the dataset `NAME`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if re.fullmatch(rf"/api/datasets/{NAME}(/revision/main)?", path):
                self.answer({"id": NAME, "sha": COMMIT, "siblings": [], "tags": [], "private": False, "downloads": 0})
            elif (found := re.fullmatch(rf"/api/datasets/{NAME}/tree/main/?(.*)", path)) and (root / found[1]).is_dir():
                self.answer([entry(each) for each in sorted((root / found[1]).rglob("*"))])
            elif (found := re.fullmatch(rf"/datasets/{NAME}/resolve/main/(.*)", path)) and (root / found[1]).is_file():
                self.data(root / found[1])
            else:
                self.answer({"error": "not found"}, 404)

        do_HEAD = do_GET

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["paths"]
            self.answer([entry(root / each) for each in asked if (root / each).exists()])

        def data(self, file: Path) -> None:
            hub.asked.append(file.name)
            failure = hub.failures.pop() if hub.failures and self.command == "GET" else 200
            whole = file.read_bytes()
            first, last = 0, len(whole) - 1
            if span := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
                first, last = int(span[1]), min(int(span[2] or last), last)
            if failure not in (0, 200):
                self.answer({"error": "not now"}, failure)
                return
            part = whole[first : last + 1]
            self.send_response(206 if span else 200)
            self.send_header("Content-Length", str(len(part)))
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
            self.send_header("ETag", f'"{hashlib.sha1(whole).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(part if failure else part[: len(part) // 2])
            self.close_connection = not failure

        def answer(self, value: object, status: int = 200) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def entry(path: Path) -> dict[str, object]:
        name = path.relative_to(root).as_posix()
        if path.is_dir():
            return {"type": "directory", "oid": COMMIT, "size": 0, "path": name}
        digest = hashlib.sha1(path.read_bytes()).hexdigest()
        return {"type": "file", "oid": digest, "size": path.stat().st_size, "path": name}

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub = Hub(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()

"""A bucket in memory, behind the protocol of S3. A real store: tests/interop/test_s3.py."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

URL = "s3://bucket"


class Bucket:
    """What is in the bucket.

    Attributes:
        objects: by their keys.
        requests: what was asked for, ``get``, ``info``, ``put``, ``copy``, ``delete`` or ``list``, and of which key.
        refuse: says with which status to answer a method and a key; None to do what is asked for.
        failures: statuses for the next requests, 200 for one that goes well.
        codes: what the answers with a status give as reason.
        damage: what the next bodies become on their way.
        hold: called with a method and a key before it is answered, several at a time.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.failures: list[int] = []
        self.codes = {403: "AccessDenied", 503: "SlowDown"}
        self.damage: list[Callable[[bytes], bytes]] = []
        self.checks = True
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.refuse: Callable[[str, str], int | None] = lambda method, key: None
        self.hold: Callable[[str, str], object] = lambda method, key: None
        self.lock = threading.Lock()
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"bucket": self}))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.server = server
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-this-test")
        monkeypatch.setenv("AWS_REGION", "us-east-1")

    def put(self, path: str, data: bytes) -> None:
        """Make an object."""
        self.objects[path] = data

    def get(self, path: str) -> bytes:
        """What an object holds."""
        return self.objects[path]

    def names(self, path: str) -> list[str]:
        """Every object below a path."""
        return sorted(key.removeprefix(f"{path}/") for key in self.objects if key.startswith(f"{path}/"))

    def put_all(self, directory: Path, path: str) -> None:
        """Make the files of a directory objects."""
        for file in directory.rglob("*"):
            if file.is_file():
                self.objects[f"{path}/{file.relative_to(directory)}"] = file.read_bytes()

    def count(self, method: str, ending: str = "") -> int:
        """How many such requests were made."""
        return sum(each == method and key.endswith(ending) for each, key in self.requests)


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the client to acknowledge its first part
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())

    def body(self, *, checked: bool) -> bytes | None:
        """What was sent; None where it is checked, and is not what the request was signed for."""
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if data and self.bucket.damage:
            data = self.bucket.damage.pop(0)(data)
        signed = self.headers.get("x-amz-content-sha256", "")
        wrong = re.fullmatch("[0-9a-f]{64}", signed) and hashlib.sha256(data).hexdigest() != signed
        return None if wrong and checked else data

    def method(self, query: dict[str, str]) -> str:
        """What a request is for."""
        if self.command == "PUT":
            return "copy" if self.headers.get("x-amz-copy-source") else "part" if "uploadId" in query else "put"
        if self.command == "POST":
            return "begin" if "uploads" in query else "put" if "uploadId" in query else "delete"
        if self.command == "GET":
            return "list" if "list-type" in query else "get"
        return {"HEAD": "info", "DELETE": "delete"}[self.command]

    def handle_one(self) -> None:
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix("/bucket").removeprefix("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        method = self.method(query)
        data = self.body(checked=self.bucket.checks or method == "delete")  # S3 always asks for a checksum of those
        with self.bucket.lock:
            self.bucket.requests.append((method, key))
            status = self.bucket.failures.pop(0) if self.bucket.failures else 200
            status = self.bucket.refuse(method, key) or status
        self.bucket.hold(method, key)
        if status != 200:
            self.refuse(status, self.bucket.codes.get(status, "Failed"))
        elif not unquote(parts.path).startswith("/bucket"):
            self.refuse(404, "NoSuchBucket")
        elif data is None:
            self.refuse(400, "XAmzContentSHA256Mismatch")
        else:
            getattr(self, f"on_{self.command.lower()}")(key, query, data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_one

    def on_get(self, key: str, query: dict[str, str], _: bytes) -> None:
        objects = self.bucket.objects
        if "list-type" in query:
            found = sorted(name for name in objects if name.startswith(query.get("prefix", "")))
            items = "".join(
                f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                f"<ETag>{etag(objects[name])}</ETag><Size>{len(objects[name])}</Size></Contents>"
                for name in found
            )
            self.answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{items}</ListBucketResult>".encode())
        elif key not in objects:
            self.refuse(404, "NoSuchKey")
        else:
            data, headers = objects[key], {"ETag": etag(objects[key]), "Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
            if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
                first, last = int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)
                if first > last:
                    self.refuse(416, "InvalidRange")
                    return
                headers["Content_Range"] = f"bytes {first}-{last}/{len(data)}"
                self.answer(206, data[first : last + 1], **headers)
            elif self.command == "HEAD":
                self.answer(200, Content_Length=str(len(data)), **headers)
            else:
                self.answer(200, data, **headers)

    on_head = on_get

    def on_put(self, key: str, query: dict[str, str], data: bytes) -> None:
        objects = self.bucket.objects
        if source := self.headers.get("x-amz-copy-source"):
            name = unquote(source).lstrip("/").removeprefix("bucket/")
            if name not in objects:
                self.refuse(404, "NoSuchKey")
                return
            objects[key] = objects[name]
            self.answer(200, f"<CopyObjectResult><ETag>{etag(objects[key])}</ETag></CopyObjectResult>".encode())
        elif "uploadId" in query:
            self.bucket.uploads[query["uploadId"]][int(query["partNumber"])] = data
            self.answer(200, ETag=etag(data))
        elif self.put_if(key, data):
            self.answer(200, ETag=etag(data))
        else:
            self.refuse(412, "PreconditionFailed")

    def put_if(self, key: str, data: bytes) -> bool:
        """Make an object where the conditions of the request hold; whether they do."""
        objects, asked = self.bucket.objects, self.headers.get("If-Match")
        with self.bucket.lock:
            if self.headers.get("If-None-Match") == "*" and key in objects:
                return False
            if asked is not None and (key not in objects or etag(objects[key]) != asked):
                return False
            objects[key] = data
            return True

    def on_post(self, key: str, query: dict[str, str], data: bytes) -> None:
        uploads = self.bucket.uploads
        if "uploads" in query:
            number = f"upload-{len(uploads)}"
            uploads[number] = {}
            result = f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
            self.answer(200, result.encode())
        elif "uploadId" in query:
            parts = [part for _, part in sorted(uploads.pop(query["uploadId"]).items())]
            self.bucket.objects[key] = b"".join(parts)
            whole = hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest()
            tag = f"<ETag>&quot;{whole}-{len(parts)}&quot;</ETag>"
            self.answer(200, f"<CompleteMultipartUploadResult>{tag}</CompleteMultipartUploadResult>".encode())
        else:
            names = re.findall("<Key>([^<]*)</Key>", data.decode())
            for name in names:
                self.bucket.objects.pop(name, None)
            gone = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
            self.answer(200, f"<DeleteResult>{gone}</DeleteResult>".encode())

    def on_delete(self, key: str, query: dict[str, str], _: bytes) -> None:
        if "uploadId" in query:
            self.bucket.uploads.pop(query["uploadId"], None)
        else:
            self.bucket.objects.pop(key, None)
        self.answer(204)


def etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


@contextmanager
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket at `URL`, for this process and those that it starts."""
    bucket = Bucket(monkeypatch)
    try:
        yield bucket
    finally:
        bucket.server.shutdown()
        bucket.server.server_close()

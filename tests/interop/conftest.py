"""A store with buckets, and what the tests of datasets in it have in common."""

import gzip
import json
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.interop.google_store import google_store
from tests.interop.object_store import LARGE, PACK, PUBLIC, Client, environment, good, object_store, put

collect_ignore = ["chat_masks.py", "chat_templates.py", "what_arrives.py", "what_trains.py"]
"""Scripts that tests run where the peers are installed: doctests are not looked for in them."""
TEXTS = [f"Document {number}: a river with {number % 7} bridges.\nIt runs east." for number in range(3000)]


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    with object_store(tmp_path_factory.mktemp("store")) as url:
        Client(url).bucket("corpus")
        yield url


@pytest.fixture
def store(endpoint):
    return Client(endpoint)


@pytest.fixture
def env(endpoint, tmp_path):
    return {**environment(endpoint), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture(scope="session")
def google(endpoint, tmp_path_factory):
    Client(endpoint).bucket(PUBLIC)
    with google_store(endpoint, tmp_path_factory.mktemp("google")) as found:
        yield found


class Bucket(NamedTuple):
    """A place in the store, by one of its protocols."""

    url: str
    path: str  # as its own client has it
    env: dict[str, str]


@pytest.fixture(params=["s3", "gs"])
def bucket(request, env, google):
    """By the client of S3, and by Google's, whose requests a proxy translates."""
    path = f"{PUBLIC}/{request.param}"
    return Bucket(f"{request.param}://{path}", path, {**env, **google})


@pytest.fixture(scope="session")
def local(tmp_path_factory):
    """The same things, made on local disks."""
    place = tmp_path_factory.mktemp("local")
    lines = [json.dumps({"text": text}) + "\n" for text in TEXTS]
    (place / "data").mkdir()
    (place / "data" / "a.jsonl").write_text("".join(lines[:1500]))
    parquet.write_table(pa.table({"text": TEXTS[1500:2200]}), place / "data" / "b.parquet", row_group_size=100)
    (place / "data" / "c.jsonl.gz").write_bytes(gzip.compress("".join(lines[2200:]).encode()))
    for words in (
        ("tokenize", place / "data", "-o", place / "tokens", "--quiet"),
        ("pack", place / "tokens", "-o", place / "packed", *PACK),
        ("shuffle", place / "packed", "-o", place / "shuffled", "--epoch", "1", "--quiet"),
        ("export", place / "packed", "-o", place / "exported", "--format", "megatron", "--quiet"),
    ):
        good(*words, env={})
    return place


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """A corpus of several blocks, and what is made of it on local disks, in many shards."""
    place = tmp_path_factory.mktemp("large")
    (place / "data").mkdir()
    lines = [json.dumps({"text": f"{number} {text} {text} {text} {text}"}) + "\n" for number, text in enumerate(TEXTS)]
    for number in range(4):
        (place / "data" / f"{number}.jsonl").write_text("".join(lines) * 25)
    for words in (
        ("tokenize", place / "data", "-o", place / "tokens", "--quiet"),
        ("pack", place / "tokens", "-o", place / "packed", *LARGE),
    ):
        good(*words, env={})
    return place


@pytest.fixture(scope="session")
def there(endpoint, local):
    """What the local commands wrote, in a bucket."""
    store = Client(endpoint)
    for name in ("data", "tokens", "packed"):
        put(store, local / name, f"corpus/there/{name}")
    return "s3://corpus/there"

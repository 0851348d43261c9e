"""What holds for all tests."""

import gc
import secrets
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.choosing.web_and_wiki import web_and_wiki
from tests.examples import examples
from tests.making import Make
from tests.places.s3_server import Bucket, serve
from tests.shell import Shell

# A busy machine is no reason for a test to fail. A law that does not say how many cases it needs has Hypothesis' 100.
settings.register_profile("packtool", examples(100))
settings.load_profile("packtool")

# What a shell starts in the background ignores Ctrl-C, and so do its children. Tests send it to theirs: undo that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What is collected stays, so the search for circles of objects finds little meanwhile.
SEARCH = gc.get_threshold()
gc.set_threshold(10_000, 10, 10)


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the collector need not look through it again and again."""
    gc.freeze()
    gc.set_threshold(*SEARCH)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that no other test fills, made by those that need it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "caches" / secrets.token_hex(8)))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 2000 bytes: small files have several."""
    monkeypatch.setattr("packtool.text.corpus.blocks.SMALLEST", 2000)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty object store at `s3://bucket`."""
    with serve(monkeypatch) as made:
        yield made


@pytest.fixture
def disk() -> Iterator[Path]:
    """A directory on a disk, which the one of `tmp_path` need not be."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Commands, run here."""
    return Shell(capsys)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the test, where it works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Stores and datasets, made once for all tests."""
    return Make(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two stores that share texts, which no test changes."""
    return web_and_wiki(tmp_path_factory.mktemp("stores"))

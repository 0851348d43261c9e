"""Where settings come from, what is asked again, and what is said of a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.errors import DataError
from packtool.places import client


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "config"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    return file


def test_settings_come_from_the_environment_then_from_the_profile(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endpoint() -> str | None:
        return client.setting("endpoint_url", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")

    assert endpoint() is None
    config.write_text("[default]\nendpoint_url = http://a\n[profile lab]\nendpoint_url = http://b%41\nregion = x\n")
    assert endpoint() == "http://a"
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert endpoint() == "http://b%41"
    assert client.setting("region", "AWS_REGION") == "x"
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert endpoint() is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://c")
    assert endpoint() == "http://c"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://d")
    assert endpoint() == "http://d"
    config.write_bytes(b"\xff not a file of settings")
    assert client.setting("region", "AWS_REGION") is None


def test_a_client_of_s3_takes_these_settings(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("[default]\nregion = eu-west-9\nendpoint_url = http://127.0.0.1:9/\n")
    store, path = client.filesystem("s3://some-bucket/a/b")
    assert path == "some-bucket/a/b"
    assert store.region == "eu-west-9"
    assert client.filesystem("s3://some-bucket/c")[0] is store
    assert client.filesystem("s3://other-bucket/c")[0] is not store


@pytest.mark.parametrize(
    ("said", "again", "code"),
    [
        ("AWS Error SLOW_DOWN during PutObject operation: reduce", True, "store-unreachable"),
        ("AWS Error UNKNOWN (HTTP status 503) during GetObject", True, "store-unreachable"),
        ("AWS Error UNKNOWN (HTTP status 429) during GetObject", True, "store-unreachable"),
        ("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7", True, "store-unreachable"),
        ("AWS Error UNKNOWN (HTTP status 400) during CreateBucket", False, "store-unreachable"),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: none", False, "store-unreachable"),
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", False, "store-denied"),
        ("AWS Error SIGNATURE_DOES_NOT_MATCH during PutObject", False, "store-denied"),
        ("AWS Error UNKNOWN (HTTP status 403) during GetObject", False, "store-denied"),
    ],
)
def test_what_passes_is_asked_again_and_what_does_not_is_said_at_once(
    said: str, again: bool, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(client.time, "sleep", waited.append)
    asked = []

    def request() -> None:
        asked.append(1)
        raise OSError(said + " (Request ID: 17)\nmore")

    with pytest.raises(DataError) as error:
        client.patiently(request, "s3://bucket/a")
    assert error.value.code == code
    assert error.value.where == "s3://bucket/a"
    assert "Request ID" not in str(error.value)
    assert "more" not in str(error.value)
    assert len(asked) == (1 + len(client.DELAYS) if again else 1)
    assert len(waited) == len(asked) - 1
    assert waited == sorted(waited)


def test_an_answer_after_a_failure_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.time, "sleep", lambda _: None)
    answers = [OSError("AWS Error SLOW_DOWN"), 7]

    def request() -> int:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert client.patiently(request, "s3://bucket/a") == 7


def test_what_is_missing_is_missing() -> None:
    def request() -> None:
        raise FileNotFoundError("none")

    with pytest.raises(FileNotFoundError):
        client.patiently(request, "s3://bucket/a")


def test_secrets_of_the_environment_are_never_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abcd-efgh")
    assert "abcd-efgh" not in str(client.failure(OSError("HTTP status 403, signed with abcd-efgh"), "s3://b/a"))

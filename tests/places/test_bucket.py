"""Where the client of S3 finds its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.errors import UsageError
from packtool.places import bucket


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return tmp_path


def test_settings_come_from_the_environment_then_from_the_profile(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endpoint() -> str | None:
        return bucket.setting("endpoint_url", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")

    assert endpoint() is None
    text = "[default]\nendpoint_url = http://a\n[profile lab]\nendpoint_url = http://b%41\nregion = x\n"
    (files / "config").write_text(text)
    assert endpoint() == "http://a"
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert endpoint() == "http://b%41"
    assert bucket.setting("region", "AWS_REGION") == "x"
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert endpoint() is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://c")
    assert endpoint() == "http://c"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://d")
    assert endpoint() == "http://d"
    (files / "config").write_text("not a configuration")
    assert bucket.setting("region", "AWS_REGION") is None


def test_keys_of_a_profile_are_those_of_its_files(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "credentials").write_text("[lab]\naws_access_key_id = ours\naws_secret_access_key = secret\n")
    assert bucket.credentials() == {}
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert bucket.credentials() == {"access_key_id": "ours", "secret_access_key": "secret"}
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    assert bucket.credentials() == {}


def test_a_profile_that_signs_in_needs_boto3(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "config").write_text("[default]\nsso_session = lab\n")
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    with pytest.raises(UsageError, match="which the package boto3 does") as caught:
        bucket.credentials()
    assert caught.value.code == "missing-extra"


def test_reasons_hold_no_secret_and_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abcd-efgh")
    error = OSError("Error performing PUT http://h/b/k in 1ms - HTTP status 403, signed with abcd-efgh\nmore")
    assert bucket.reason(error) == "PUT: HTTP status 403, signed with …"

"""Where the client of S3 finds its settings."""

from pathlib import Path

import pytest

from packtool.errors import DataError, UsageError
from packtool.places import bucket
from packtool.places.store import StorePlace
from tests.places.s3_server import Bucket

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for the AWS files, with no setting anywhere else."""
    places = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE")
    for name in (*KEYS, *places):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


def test_a_dataset_is_read_with_a_profile(monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    server = Bucket(monkeypatch)
    server.put("packed/a", b"1")
    address = f"http://127.0.0.1:{server.server.server_address[1]}"
    for name in (*KEYS, "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    text = "[profile lab]\nservices = ours\nregion = eu-north-1\n[services ours]\ns3 =\n  endpoint_url = "
    (files / "config").write_text(f"{text}{address}\n[profile keyless]\nendpoint_url = {address}\n")
    (files / "credentials").write_text("[lab]\naws_access_key_id = ours\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert StorePlace("s3://bucket/packed").read("a") == b"1"
    assert ("get", "packed/a") in server.requests
    found = bucket.profile()
    assert found["endpoint"] == address
    assert found["credential_provider"]()["access_key_id"] == "ours"
    assert found["credential_provider"].config == {"region": "eu-north-1"}
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    assert bucket.profile()["credential_provider"].config == {"region": "us-east-2"}
    monkeypatch.setenv("AWS_PROFILE", "keyless")
    assert bucket.profile() == {"endpoint": address}
    monkeypatch.setenv("AWS_PROFILE", "unheard-of")
    with pytest.raises(
        DataError, match=r"s3://bucket: can't open this object store \(The config profile \(unheard-of\)"
    ):
        StorePlace("s3://bucket/packed").read("a")


def test_files_count_where_the_environment_has_no_keys(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bucket.profile() == {}
    (files / "credentials").write_text("[default]\naws_access_key_id = ours\naws_secret_access_key = secret\n")
    assert bucket.profile()["credential_provider"]()["access_key_id"] == "ours"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    assert bucket.profile() == {}
    monkeypatch.setenv("AWS_PROFILE", "default")
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    with pytest.raises(UsageError, match="AWS_PROFILE: AWS profiles are read by the package boto3") as caught:
        bucket.profile()
    assert caught.value.code == "missing-extra"

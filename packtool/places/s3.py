"""Amazon S3 and compatible object stores, through `obstore`."""

from __future__ import annotations

import configparser
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from packtool.errors import UsageError
from packtool.installing import how_to_install
from packtool.places.bucket import PART_BYTES, Bucket, DeniedError, FailedError, reason

CONNECT_SECONDS = 10
REQUEST_SECONDS = 60
"""How long one request may take, with its data: a store that does not answer any more is given up after two."""
RETRY_SECONDS = 30
"""How long the library tries a request again, after delays that double."""
RETRIES = 10


class S3Bucket(Bucket):
    """One bucket.

    Credentials, region and endpoint come from the environment and the AWS files only.
    """

    def __init__(self, bucket: str) -> None:
        from obstore.store import S3Store

        endpoint = setting("endpoint_url", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        region = setting("region", "AWS_REGION", "AWS_DEFAULT_REGION")
        options: dict[str, Any] = credentials()
        if endpoint:
            options["endpoint"] = endpoint if "://" in endpoint else f"https://{endpoint}"
        if region:
            options["region"] = region
        # Amazon itself refuses a body that differs from its checksum; of other stores only some look.
        self._checks = endpoint is None
        self._store = S3Store(
            bucket,
            checksum_algorithm="crc64nvme",
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                "timeout": timedelta(seconds=REQUEST_SECONDS),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            **options,
        )

    def below(self, prefix: str) -> dict[str, int]:
        import obstore

        with _translated():
            objects = [each for chunk in obstore.list(self._store, prefix) for each in chunk]
        return {str(each["path"]): int(each["size"]) for each in objects}

    def about(self, key: str) -> tuple[int, int] | None:
        import obstore

        try:
            with _translated():
                about = obstore.head(self._store, key)
        except FileNotFoundError:
            return None
        return int(about["size"]), int(about["last_modified"].timestamp() * 1e9)

    def read(self, key: str, first: int, count: int) -> memoryview:
        import obstore

        if not count:
            return memoryview(b"")
        with _translated():
            return memoryview(obstore.get_range(self._store, key, start=first, length=count))

    def put(self, key: str, blocks: Iterator[bytes], size: int) -> bool:
        import obstore

        digests: list[bytes] = []

        def hashed() -> Iterator[bytes]:
            for block in blocks:
                digests.append(hashlib.md5(block, usedforsecurity=False).digest())
                yield block

        with _translated():
            if size <= PART_BYTES:
                stored = obstore.put(self._store, key, b"".join(hashed()), use_multipart=False)
            else:
                stored = obstore.put(self._store, key, hashed(), chunk_size=PART_BYTES, max_concurrency=1)
        if size <= PART_BYTES:
            expected = b"".join(digests).hex()
        else:
            whole = hashlib.md5(b"".join(digests), usedforsecurity=False)
            expected = f"{whole.hexdigest()}-{len(digests)}"
        return self._checks or str(stored["e_tag"]).strip('"') == expected

    def create(self, key: str, data: bytes) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with _translated():
            try:
                obstore.put(self._store, key, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def copy(self, source: str, target: str) -> None:
        import obstore

        with _translated():
            obstore.copy(self._store, source, target)

    def remove(self, keys: Sequence[str]) -> None:
        import obstore

        with _translated():
            obstore.delete(self._store, list(keys))


@contextmanager
def _translated() -> Iterator[None]:
    """Translate errors of the library to those of a `Bucket`."""
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(reason(error)) from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise DeniedError(reason(error)) from None
    except exceptions.AlreadyExistsError:
        raise
    except exceptions.BaseError as error:
        said = reason(error)
        denied = re.search(r": 40[13] ", said)  # where it lists, the library has no exception of its own for it
        raise (DeniedError if denied else FailedError)(said) from None


def credentials() -> dict[str, Any]:
    """Return the settings that `obstore` does not find by itself: those of a profile in the AWS files.

    Raises:
        UsageError: the profile asks for what only `boto3` can do, which is not installed.
    """
    if os.environ.get("AWS_ACCESS_KEY_ID") and not os.environ.get("AWS_PROFILE"):
        return {}
    names = ("access_key_id", "secret_access_key", "session_token")
    given = {name: value for name in names if (value := setting(f"aws_{name}"))}
    if "access_key_id" in given and "secret_access_key" in given:
        return given
    if any(map(setting, ("sso_session", "sso_start_url", "role_arn", "credential_process", "source_profile"))):
        try:
            from boto3 import Session  # type: ignore[import-not-found]
            from obstore.auth.boto3 import Boto3CredentialProvider
        except ImportError:
            raise UsageError(
                "missing-extra",
                "the AWS profile signs in, takes a role or runs a program, which the package boto3 does",
                remedy=f"install it: {how_to_install('boto3')}",
                where="AWS_PROFILE",
            ) from None
        return {"credential_provider": Boto3CredentialProvider(Session())}
    return {}


def setting(name: str, *variables: str) -> str | None:
    """Return a setting from the environment, else from the profile in the AWS files.

    Args:
        name: of the setting in the files.
        variables: of the environment, the first that is set counts.
    """
    for variable in variables:
        if value := os.environ.get(variable):
            return value
    profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    folder = Path.home() / ".aws"
    files = {
        os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or folder / "credentials": profile,
        os.environ.get("AWS_CONFIG_FILE") or folder / "config": profile
        if profile == "default"
        else f"profile {profile}",
    }
    for file, section in files.items():
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # the store has the last word
        if value := parser.get(section, name, fallback=None):
            return value
    return None

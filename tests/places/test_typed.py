"""URLs of datasets, and what is refused of them."""

from __future__ import annotations

import pytest

from packtool.errors import UsageError
from packtool.places.url import dataset_url, require_no_secret


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("hf://datasets/a", "datasets can't lie in hf://"),
        ("file:///a", "datasets can't lie in file://"),
        ("s3://bucket", "not the URL of a dataset"),
        ("s3:///a", "not the URL of a dataset"),
        ("s3://bucket/a//b", "not the URL of a dataset"),
        ("s3://bucket/../b", "not the URL of a dataset"),
        ("s3://bucket/a?region=x", "holds ?, #"),
        ("s3://bucket/a*", "holds ?, #"),
        ("s3://bucket/a%2f..", "holds ?, #"),
    ],
)
def test_what_is_not_the_url_of_a_dataset_is_refused(given: str, what: str) -> None:
    with pytest.raises(UsageError) as error:
        dataset_url(given)
    assert error.value.code == "unsupported-store"
    assert what in str(error.value)


def test_a_url_with_credentials_is_refused_without_repeating_them() -> None:
    for url in ("s3://key:secret@bucket/a", "s3://key@bucket/a", "gs://user:secret@bucket/a"):
        with pytest.raises(UsageError, match="holds credentials") as error:
            require_no_secret(url)
        assert "secret@" not in str(error.value)
        assert "key" not in str(error.value).replace("packtool", "")
    require_no_secret("gs://anonymous@bucket/a")
    require_no_secret("s3://bucket/a@b")

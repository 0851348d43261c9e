"""Options that choose documents and make no sense: one line, before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import PacktoolError, UsageError
from packtool.storage.token_store import Corpus
from tests.commands.web_and_wiki import pack, web_and_wiki


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return web_and_wiki(tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mix": ["web=-1", "wiki=1"]}, "the weight of web is '-1', not a number from 0"),
        ({"mix": ["web=nan", "wiki=1"]}, "the weight of web is 'nan', not a number from 0"),
        ({"mix": ["web=1"]}, "wiki has no weight"),
        ({"mix": ["web=1", "code=1"]}, "there is no store 'code' among the inputs"),
        ({"mix": ["web=1", "web=1", "wiki=1"]}, "web has two weights"),
        ({"mix": ["web"]}, "'web' is not a weight"),
        ({"mix": ["web=0", "wiki=0"]}, "--mix: no document is left: it takes 300 of the 300 documents"),
        ({"holdout": "0.001%", "part": "holdout"}, "--holdout: 0.001% holds out none of the 300 documents"),
        ({"min_tokens": 500}, "--min-tokens: no document is left: it takes 300 of the 300 documents"),
        ({"sample": "0%"}, "no document is left"),
        ({"sample": "120%"}, "'120%' is not a share, such as 1%"),
        ({"sample_interval": 64}, "--sample-interval: has no effect without --sample"),
        ({"tokens": "1k"}, "there are no shares of it"),
        ({"mix": ["web=0.5", "wiki=0.4"], "tokens": "1k"}, "the shares sum to 0.9"),
        ({"mix": ["web=0.5", "wiki=0.5"], "tokens": "1M"}, "epochs of web. Give fewer --tokens"),
        ({"mix": ["web=0.5", "wiki=0.5"], "tokens": "-3"}, "'-3' is not a number, such as 300B"),
        ({"holdout": "100%"}, "100% holds out all documents"),
        ({"holdout": "much"}, "'much' is not a part, such as 0.5%, 1000 documents or 2M tokens"),
        ({"part": "holdout"}, "has no effect without --holdout"),
        ({"shard_of": "0/4"}, "'0/4' is not a part by its number, such as 1/8"),
        ({"exclude": "/nowhere"}, "can't be read (no such file or directory)"),
    ],
)
def test_bad_choices_are_one_line_before_any_work(
    stores: list[Path], tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PacktoolError) as caught:
        pack(stores, tmp_path / "p", **options)
    assert message in str(caught.value)
    assert not (tmp_path / "p").exists()


def test_lists_and_stores_that_do_not_fit(stores: list[Path], tmp_path: Path) -> None:
    (tmp_path / "list").write_text("web.jsonl:2\nweb.jsonl:2000\n")
    with pytest.raises(PacktoolError, match=r"list:2: no store has a document web\.jsonl:2000"):
        pack(stores, tmp_path / "p", exclude=tmp_path / "list")
    (tmp_path / "list").write_text("web.jsonl\n")
    with pytest.raises(PacktoolError, match=r"list:1: 'web\.jsonl' is not a document"):
        pack(stores, tmp_path / "p", exclude=tmp_path / "list")
    packtool.tokenize(stores[0].with_suffix(".jsonl"), tmp_path / "plain", provenance=False, workers=1)
    with pytest.raises(UsageError, match="made with --no-provenance"):
        pack([tmp_path / "plain"], tmp_path / "p", holdout="1%")
    assert len(Corpus([tmp_path / "plain"]).lengths()) == 200

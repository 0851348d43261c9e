"""Columns kept of documents, as tensors: the same from workers of any number and kind."""

from pathlib import Path
from typing import Any

import pytest
import torch

from packtool.errors import UsageError
from packtool.torch import Loader
from tests.making import Make

RECORDS = [{"text": "word " * (n % 23), "score": n / 2, "lang": ["en", "de"][n % 2]} for n in range(80)]


@pytest.fixture(scope="module")
def packed(make: Make) -> Path:
    rows = {"strategy": "bfd", "sequence_length": 64, "keep": "score:number,lang"}
    return make(RECORDS, {"columns": ["score", "lang"]}, packed=rows) / "packed"


def test_workers_give_the_same_columns(packed: Path) -> None:
    fields = ("cu_seqlens", "column.score", "column.lang")

    def batches(**options: Any) -> list[dict[str, Any]]:
        return list(Loader(packed, batch_size=4, fields=fields, **options))

    here = batches()
    for there in (batches(num_workers=2), batches(num_workers=1, multiprocessing_context="spawn")):
        assert len(there) == len(here) > 2
        for one, other in zip(here, there, strict=True):
            assert one.keys() == other.keys() == set(fields)
            assert torch.equal(one["column.lang"], other["column.lang"])
            assert torch.equal(one["column.score"].nan_to_num(-1), other["column.score"].nan_to_num(-1))
    assert (here[0]["column.score"].dtype, here[0]["column.lang"].dtype) == (torch.float64, torch.int32)


def test_a_loader_has_their_names(packed: Path) -> None:
    assert Loader(packed).columns == {"score": None, "lang": ["de", "en"]}
    assert not any(name.startswith("column.") for name in next(iter(Loader(packed))))
    with pytest.raises(UsageError, match="there is no column 'long'; there are score, lang"):
        Loader(packed, fields=("column.long",))

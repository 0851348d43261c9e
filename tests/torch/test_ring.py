"""Documents at multiples, split among processes: ring attention over their halves gives the logits of one process."""

from pathlib import Path
from typing import Any

import pytest

import packtool
from tests.making import Make, drawn_lengths

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from packtool.torch import Loader, document_mask, varlen_attention  # noqa: E402
from tests.torch.processes import launched_by, run_together  # noqa: E402

PROGRAM = Path(__file__).with_name("ring.py")
LENGTHS = drawn_lengths(30, 59, 4)


def logits_of(dataset: Path, size: int, folder: Path) -> list[Any]:
    """The logits of every row, put together from those of all processes of a group."""
    outs = [folder / f"{size}-{rank}.pt" for rank in range(size)]
    run_together(PROGRAM, [(dataset, out) for out in outs], launched_by("torchrun", size))
    rows = []
    for parts in zip(*map(torch.load, outs), strict=True):
        place, logits = (torch.cat([part[n] for part in parts]) for n in (0, 1))
        assert place.sort().values.tolist() == list(range(len(place))), "each place on one rank"
        rows.append(logits[place.argsort()])
    return rows


@pytest.mark.parametrize("size", [2, 4])
def test_a_ring_gives_the_logits_of_one_process(make: Make, tmp_path: Path, size: int) -> None:
    options = {"strategy": "bfd", "sequence_length": 128, "document_multiple": 2 * size, "index_only": True}
    rows = make(LENGTHS, rows=options) / "rows"
    dataset = packtool.open(rows)
    assert dataset.manifest.ledger.rounding > 0
    alone, ring = (logits_of(rows, n, tmp_path) for n in (1, size))
    for row, (expected, found) in enumerate(zip(alone, ring, strict=True)):
        own = torch.as_tensor(dataset.batch([row])["document_ids"][0]) >= 0
        torch.testing.assert_close(found[own], expected[own], rtol=1e-10, atol=1e-10)


def test_masks_agree_on_every_token(make: Make) -> None:
    options = {"strategy": "bfd", "sequence_length": 128, "document_multiple": 8}
    batch = next(iter(Loader(make(LENGTHS, rows=options) / "rows", batch_size=2)))
    rows, length = batch["document_ids"].shape
    query, key, value = torch.randn(3, rows, 2, length, 8, generator=torch.Generator().manual_seed(0))
    dense = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=document_mask(batch["document_ids"])
    )
    flat = [each.transpose(1, 2).reshape(rows * length, 2, 8) for each in (query, key, value)]
    varlen = varlen_attention(
        *flat, batch["cu_seqlens"], batch["max_seqlen"], cu_seqlens_padded=batch["cu_seqlens_padded"]
    )
    own = batch["document_ids"].reshape(-1) >= 0
    assert not own.all()
    torch.testing.assert_close(varlen[own], dense.transpose(1, 2).reshape(rows * length, 2, 8)[own])
    assert not varlen[~own].any(), "padding attends to nothing"

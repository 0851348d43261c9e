"""Attention within documents: the three forms agree, and none looks into another document."""

import pytest

from tests.making import Make

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch.nn.attention.flex_attention import flex_attention  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from packtool.torch import Loader, block_mask, document_mask, varlen_attention  # noqa: E402


@pytest.fixture
def batch(make: Make) -> dict[str, torch.Tensor]:
    rows = make([70, 3, 120, 41, 9, 200, 33, 64], rows={"strategy": "bfd", "sequence_length": 128}) / "rows"
    only: dict[str, torch.Tensor] = next(iter(Loader(rows, batch_size=4)))
    return only


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_the_three_forms_agree(batch: dict[str, torch.Tensor]) -> None:
    torch.manual_seed(0)
    rows, length = batch["document_ids"].shape
    query, key, value = torch.randn(3, rows, 2, length, 8)
    dense = scaled_dot_product_attention(query, key, value, attn_mask=document_mask(batch["document_ids"]))
    flex = flex_attention(query, key, value, block_mask=block_mask(batch["document_ids"]))
    flat = (each.transpose(1, 2).reshape(rows * length, 2, 8) for each in (query, key, value))
    varlen = varlen_attention(*flat, batch["cu_seqlens"], int(batch["max_seqlen"]))
    torch.testing.assert_close(flex, dense)
    torch.testing.assert_close(varlen.reshape(rows, length, 2, 8).transpose(1, 2), dense)


def test_a_change_in_one_document_stays_there(batch: dict[str, torch.Tensor]) -> None:
    torch.manual_seed(0)
    rows, length = batch["document_ids"].shape
    query, key, value = torch.randn(3, rows, 1, length, 8)
    mask = document_mask(batch["document_ids"])
    before = scaled_dot_product_attention(query, key, value, attn_mask=mask)
    changed = batch["document_ids"] == 0
    value[changed[:, None, :]] += 1
    after = scaled_dot_product_attention(query, key, value, attn_mask=mask)
    moved = (before != after).any(-1)[:, 0]
    assert torch.equal(moved, changed)
    assert not moved.all()


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_a_batch_of_no_rows_has_masks(make: Make) -> None:
    """As some ranks have at the end of a pass without `drop_last`."""
    rows = make([70, 3, 120, 41, 9], rows={"strategy": "bfd", "sequence_length": 128}) / "rows"
    loader = Loader(rows, batch_size=8, rank=7, world_size=8, drop_last=False)
    (empty,) = loader
    assert empty["document_ids"].shape == (0, 128)
    query = torch.randn(0, 2, 128, 8)
    masks = block_mask(empty["document_ids"]), document_mask(empty["document_ids"])
    assert flex_attention(query, query, query, block_mask=masks[0]).shape == (0, 2, 128, 8)
    assert scaled_dot_product_attention(query, query, query, attn_mask=masks[1]).shape == (0, 2, 128, 8)
    flat = query.transpose(1, 2).flatten(0, 1)
    assert varlen_attention(flat, flat, flat, empty["cu_seqlens"], empty["max_seqlen"]).shape == (0, 2, 8)


def recurred(values: list[float], sequence: list[int]) -> list[float]:
    """A state-space layer in short: the state decays, and is empty where a sequence begins, as with `seq_idx`."""
    out: list[float] = []
    for place, value in enumerate(values):
        goes_on = place > 0 and sequence[place] == sequence[place - 1]
        out.append(value + 0.5 * out[-1] if goes_on else value)
    return out


def test_document_ids_are_the_seq_idx_of_state_space_layers(batch: dict[str, torch.Tensor]) -> None:
    """Each document of a row gets what it gets alone; they have the shape and type that the kernels ask for."""
    documents = batch["document_ids"]
    assert (documents.shape, documents.dtype, documents.is_contiguous()) == ((4, 128), torch.int32, True)
    begins = batch["cu_seqlens"][:-1].tolist()
    for row, sequence in zip(batch["input_ids"].tolist(), documents.tolist(), strict=True):
        found = recurred(row, sequence)
        for number in range(max(sequence) + 1):
            places = [place for place, each in enumerate(sequence) if each == number]
            assert [found[place] for place in places] == recurred([row[place] for place in places], [0] * len(places))
    flat = documents.flatten().tolist()
    changes = [place for place in range(len(flat)) if place % 128 == 0 or flat[place] != flat[place - 1]]
    assert changes == begins

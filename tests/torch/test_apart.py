"""Documents that see each other are found, by the module that mixes them, and nothing else is."""

import doctest
from pathlib import Path
from typing import Any

import pytest

from benchmarks.apart import flash, kinds

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.errors import UsageError  # noqa: E402
from packtool.torch import apart, check_apart, document_mask, flat, kernels, with_cu_seq_lens  # noqa: E402
from tests.torch.processes import launched_by, run_together  # noqa: E402


class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Attention within documents, or over the row; or a recurrent layer. Dropout and a buffer, as training has them."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.embed, self.dropout = torch.nn.Embedding(64, 8), torch.nn.Dropout(0.5)
        self.recurrent = torch.nn.GRU(8, 8, batch_first=True)
        self.head = torch.nn.Linear(8, 64)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, input_ids: Any, document_ids: Any) -> Any:
        self.calls += 1
        states = self.dropout(self.embed(input_ids))
        if self.kind == "recurrent":
            return self.head(self.recurrent(states)[0])
        mask = document_mask(document_ids if self.kind == "apart" else torch.zeros_like(document_ids))
        heads = states[:, None]
        return self.head(torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask)[:, 0])


def a_batch(*rows: tuple[int, ...]) -> dict[str, Any]:
    """Rows of documents of these lengths."""
    lengths = rows or ((7, 5, 4),)
    documents = [torch.repeat_interleave(torch.arange(len(row)), torch.tensor(row)) for row in lengths]
    document_ids = torch.stack(documents)
    ids = torch.randint(64, document_ids.shape, generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids, "document_ids": document_ids}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_that_is_apart_is_left_as_it_was(dtype: Any) -> None:
    model = Model("apart").to(dtype)
    random = torch.get_rng_state()
    assert check_apart(model, a_batch())
    assert model.training
    assert model.calls == 0
    assert torch.equal(torch.get_rng_state(), random)
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("kind", "named"), [("row", r"\. Give"), ("recurrent", r", by recurrent \(GRU\)\. Give")])
def test_a_model_that_mixes_is_left_as_it_was_too(kind: str, named: str, dtype: Any) -> None:
    model = Model(kind).to(dtype)
    with pytest.raises(UsageError, match=f"^Model: documents of a row see each other{named}.*check=False"):
        check_apart(model, a_batch())
    assert model.calls == 0
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("lengths", [(16,), (2, 14), (15, 1)])
def test_there_is_nothing_to_compare(lengths: tuple[int, ...]) -> None:
    assert not check_apart(Model("recurrent"), a_batch(lengths))


@pytest.mark.parametrize("said_by", ["document_ids", "labels", "input_ids"])
def test_padding_is_no_document(said_by: str) -> None:
    batch = a_batch((9, 7))
    if said_by == "document_ids":
        batch["document_ids"][:, 9:] = -1
    elif said_by == "labels":
        batch["labels"] = batch["input_ids"].clone()
        batch["labels"][:, 9:] = -100
    else:
        batch["input_ids"][:, 9:] = 0
    assert not check_apart(Model("recurrent"), batch)


@pytest.mark.parametrize("row", range(3))
def test_documents_of_every_row_are_compared(row: int) -> None:
    """Only one row has two documents that see each other: its boundaries get lost."""
    batch = a_batch((9, 7), (5, 11), (4, 12))

    def lost(input_ids: Any, document_ids: Any) -> Any:
        seen = document_ids.clone()
        seen[row] = 0
        return model(input_ids, seen)

    model = Model("apart")
    with pytest.raises(UsageError, match="lost: documents of a row see each other"):
        check_apart(lost, batch)


@pytest.mark.parametrize(("noise", "mixes"), [(1e-3, False), (1e-3, True)])
def test_noise_of_kernels_is_no_leak(noise: float, mixes: bool) -> None:
    """Numbers that differ from call to call, as sums in no fixed order do, and a leak beyond them."""
    random = torch.Generator().manual_seed(0)

    def noisy(input_ids: Any, document_ids: Any) -> Any:
        states = torch.nn.functional.one_hot(input_ids, 64).float()
        logits = states + noise * torch.rand(states.shape, generator=random)
        return logits + (states.cumsum(1) if mixes else 0)

    if mixes:
        with pytest.raises(UsageError, match="documents of a row see each other"):
            check_apart(noisy, a_batch())
    else:
        assert check_apart(noisy, a_batch())


@pytest.mark.parametrize(("mixes", "passes"), [(False, 2), (True, 3)])
def test_the_model_is_called_once_more_before_it_is_said_to_mix(mixes: bool, passes: int) -> None:
    calls = []

    def counted(input_ids: Any, document_ids: Any) -> Any:
        calls.append(input_ids)
        states = input_ids[..., None].float()
        return states.cumsum(1) if mixes else states

    batch = a_batch((7, 5, 4), (9, 4, 3))
    if mixes:
        with pytest.raises(UsageError, match="counted: documents of a row see each other"):
            check_apart(counted, batch)
        assert torch.equal(calls[2], calls[0])
    else:
        assert check_apart(counted, batch)
    assert len(calls) == passes
    differs = calls[0] != calls[1]
    assert differs.tolist() == [
        [*[False] * 3, *[True] * 3, *[False] * 10],
        [*[False] * 4, *[True] * 4, *[False] * 8],
    ]


def test_what_is_amiss_is_said() -> None:
    batch = a_batch((7, 5, 4), (9, 4, 3))
    with pytest.raises(
        UsageError, match=r"bare: it gives no logits of shape \(rows, T, …\)\. Give a function that ret"
    ):

        def bare(input_ids: Any, document_ids: Any) -> Any:
            return input_ids[0].float()

        check_apart(bare, batch)
    del batch["document_ids"]
    with pytest.raises(
        UsageError, match=r"batch: no field says where documents begin\. Give the batch position_ids or"
    ):
        check_apart(bare, batch)


def test_examples_of_docstrings() -> None:
    for module in (apart, kernels):
        failed, tried = doctest.testmod(module)
        assert tried
        assert not failed


MIXING = {"qwen3_5_text": "linear_attn", "lfm2": "conv", "gpt_oss": "self_attn", "bloom": "self_attention"}


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3_text", "mixtral", *MIXING])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kinds_of_models(name: str, dtype: Any) -> None:
    """What `python -m benchmarks.apart` tries for all kinds."""
    pytest.importorskip("transformers")
    model = kinds.make_model(name).to(dtype)
    if name not in MIXING:
        assert check_apart(model, kinds.make_batch(), use_cache=False)
        return
    with pytest.raises(UsageError, match=rf"see each other, by [a-z.]*\.0\.{MIXING[name]} \("):
        check_apart(model, kinds.make_batch(), use_cache=False)


def test_what_is_a_way_out_of_attention_over_the_row() -> None:
    """A cache, or a mask of ones, beside positions."""
    pytest.importorskip("transformers")
    model, batch = kinds.make_model("llama"), kinds.make_batch()
    ones = torch.ones_like(batch["input_ids"])
    for options in ({"use_cache": True}, {"use_cache": False, "attention_mask": ones}):
        with pytest.raises(UsageError, match="use_cache=False and no attention_mask"):
            check_apart(model, batch, **options)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt_oss"])
def test_flash_attention_needs_to_be_told(name: str) -> None:
    """Of more than one row, by stand-ins for its functions; and what it is told keeps the logits of sdpa."""
    pytest.importorskip("transformers")
    batch = kinds.make_batch()
    model = flash.use(kinds.make_model(name, "eager"))
    with pytest.raises(UsageError, match=r"by model.layers.0.self_attn \("):
        check_apart(model, batch, use_cache=False)
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    logits = []
    for form in (with_cu_seq_lens, flat):
        assert check_apart(model, form(batch), use_cache=False)
        logits.append(model(**form(inputs), use_cache=False).logits.flatten(0, 1))
    assert torch.equal(*logits)
    if name != "gpt_oss":
        expected = kinds.make_model(name)(**inputs, use_cache=False).logits.flatten(0, 1)
        own = batch["labels"].flatten() != -100
        torch.testing.assert_close(logits[0][own], expected[own])


ON_TWO_RANKS = """
import sys
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from benchmarks.apart import kinds
from packtool.errors import UsageError
from packtool.torch import check_apart

dist.init_process_group("gloo")
batch = kinds.make_batch()
if dist.get_rank() == 0:  # has a row of one document
    batch = {name: value[:1, :30].clone() for name, value in batch.items()}
for name in ("llama", "lfm2"):
    for sharded in (False, True):
        model = kinds.make_model(name)
        if sharded:
            for layer in model.model.layers:
                fully_shard(layer)
            fully_shard(model)
        else:
            model = torch.nn.parallel.DistributedDataParallel(model)
        try:
            assert check_apart(model, batch, use_cache=False)
            said = ""
        except UsageError as error:
            said = str(error)
        assert ("documents of a row see each other" in said) == (name == "lfm2"), said
        assert ("conv" in said) == (name == "lfm2" and dist.get_rank() == 1), said
dist.barrier()
dist.destroy_process_group()
"""


def test_ranks_agree_though_one_has_a_row_of_one_document(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "ranks.py").write_text(ON_TWO_RANKS)
    run_together(tmp_path / "ranks.py", [[], []], launched_by("torchrun"))

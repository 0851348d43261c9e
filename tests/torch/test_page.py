"""The pages that need PyTorch run, each in order, in an empty directory."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import packtool
from tests.stores import document_loss, write_store
from tests.test_docs import ELSEWHERE, ROOT, blocks, command, corpus, empty, run_blocks

__all__ = ["command", "corpus", "empty"]
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:The .srun. command is available"),  # where Slurm is
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # Lightning calls what PyTorch deprecates
]
torch = pytest.importorskip("torch")
ABORTED = "terminate called without an active exception"
"""What a rank says, now and then, when it ends after all of its work: a thread of gloo's wants the interpreter that is
gone. No line of the page or of packtool runs then, so the page is tried once more."""


@pytest.mark.parametrize("page", ELSEWHERE)
def test_the_page_runs(page: str, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it but the data of torchtitan and Megatron, which tests/interop runs beside them."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    again = shutil.copytree(empty, empty.with_name("again"), symlinks=True)
    try:
        run_blocks(page, blocks(ROOT / "docs" / page), empty, monkeypatch)
    except AssertionError as error:
        if ABORTED not in str(error):
            raise
        run_blocks(page, blocks(ROOT / "docs" / page), again, monkeypatch)


def test_the_dataset_for_verl_has_rows_and_which_of_their_tokens_train(tmp_path: Path) -> None:
    """The class of the page reads an export; that verl's trainer takes it was tried by hand."""
    (code,) = (code for _, name, code in blocks(ROOT / "docs" / "coming-from.md") if name == "packed_rows.py")
    store = write_store(tmp_path / "store", [5, 40, 90, 17, 3, 60], loss=document_loss)
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=64)
    packtool.export(tmp_path / "rows", tmp_path / "verl", format="parquet")
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    found = namespace["PackedRows"](map(str, (tmp_path / "verl").glob("data/*.parquet")))
    rows = [found[n] for n in range(len(found))]
    batch = packtool.open(tmp_path / "rows", dtype="int64").batch(slice(0, None), labels="same")
    for name in ("input_ids", "position_ids"):
        assert torch.stack([row[name] for row in rows]).tolist() == batch[name].tolist()
    trains = (batch["labels"] != -100) & (batch["position_ids"] > 0)
    assert torch.stack([row["loss_mask"] for row in rows]).tolist() == trains.tolist()
    assert 0 < trains.sum() < trains.size

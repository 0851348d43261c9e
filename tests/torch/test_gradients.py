"""The gradient of a step is that of the whole batch, in two turns on each of two processes, in every trainer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packtool
from tests.stores import document_loss, write_store
from tests.test_docs import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402
from tests.torch.gradients import BATCH, FIELDS, TRAINERS, gradient_of, llama, loss_of, plain  # noqa: E402
from tests.torch.test_recount import launched_by  # noqa: E402


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_split_batch_has_the_gradient_of_the_whole(tmp_path: Path, trainer: str) -> None:
    """Rows where few tokens train, of some none, so that turns and ranks differ in targets."""
    if trainer != "ddp":
        pytest.importorskip(trainer)
    store = write_store(tmp_path / "store", np.random.default_rng(3).integers(1, 60, 60).tolist(), loss=document_loss)
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=64)
    program, out = ROOT / "tests" / "torch" / "gradients.py", tmp_path / "gradient.pt"
    surrounding = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    surrounding |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(program), trainer, str(tmp_path / "rows"), str(out)],
            env={**surrounding, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for environment in launched_by("lightning" if trainer == "lightning" else "torchrun")
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), b"".join(errors)[-3000:].decode()
    if trainer == "transformers":
        model, fields = llama(), ("input_ids", "labels", "position_ids")
        batch = next(iter(Loader(tmp_path / "rows", batch_size=BATCH, labels="same", fields=fields)))
        model(**batch, use_cache=False).loss.backward()
    else:
        model = plain()
        batch = next(iter(Loader(tmp_path / "rows", batch_size=BATCH, fields=FIELDS)))
        (loss_of(model, batch) / batch["global_targets"]).backward()
    targets = (batch["labels"] != -100).sum(1)
    assert len(set(targets.tolist())) > 2, "rows differ in targets"
    torch.testing.assert_close(torch.load(out), gradient_of(model), rtol=1e-4, atol=1e-7)

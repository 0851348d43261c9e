"""The gradient of a step is that of the whole batch, in two turns on each of two processes, in every trainer."""

from pathlib import Path

import pytest

from tests.making import Make, drawn_lengths
from tests.stores import document_loss
from tests.test_docs import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402
from tests.torch.gradients import BATCH, FIELDS, TRAINERS, gradient_of, llama, loss_of, plain  # noqa: E402
from tests.torch.processes import launched_by, run_together  # noqa: E402


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_split_batch_has_the_gradient_of_the_whole(make: Make, tmp_path: Path, trainer: str) -> None:
    """Rows where few tokens train, of some none, so that turns and ranks differ in targets."""
    if trainer != "ddp":
        pytest.importorskip(trainer)
    options = {"strategy": "bfd", "sequence_length": 64}
    rows = make(drawn_lengths(60, 59, 3, 1), {"loss": document_loss}, rows=options) / "rows"
    out = tmp_path / "gradient.pt"
    environments = launched_by("lightning" if trainer == "lightning" else "torchrun")
    run_together(ROOT / "tests" / "torch" / "gradients.py", [(trainer, rows, out)] * len(environments), environments)
    if trainer == "transformers":
        model, fields = llama(), ("input_ids", "labels", "position_ids")
        batch = next(iter(Loader(rows, batch_size=BATCH, labels="same", fields=fields)))
        model(**batch, use_cache=False).loss.backward()
    else:
        model = plain()
        batch = next(iter(Loader(rows, batch_size=BATCH, fields=FIELDS)))
        (loss_of(model, batch) / batch["global_targets"]).backward()
    targets = (batch["labels"] != -100).sum(1)
    assert len(set(targets.tolist())) > 2, "rows differ in targets"
    torch.testing.assert_close(torch.load(out), gradient_of(model), rtol=1e-4, atol=1e-7)

"""FlexAttention keeps documents apart where rows are split among processes: examples/train/split_rows.py, on CPUs."""

from pathlib import Path

import pytest

from tests.making import Make, drawn_lengths
from tests.torch.processes import launched_by, run_together

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

PROGRAM = Path(__file__).with_name("context.py")
ROWS, LENGTH = 2, 512  # rows of at least 128 tokens for each process


def losses(rows: Path, place: Path, size: int, *, apart: bool) -> torch.Tensor:
    """The loss of each place of a batch, put together from those of all processes of a group."""
    outs = [place / f"{size}-{rank}.pt" for rank in range(size)]
    # To compile the mask takes half a minute, and changes nothing but the time.
    environments = [{**each, "TORCH_COMPILE_DISABLE": "1"} for each in launched_by("torchrun", size)]
    run_together(PROGRAM, [(rows, out, int(apart)) for out in outs], environments)
    parts = [torch.load(out) for out in outs]
    where, loss = (torch.cat([part[n] for part in parts]) for n in (0, 1))
    assert where.sort().values.tolist() == list(range(ROWS * LENGTH)), "each place on one rank"
    return loss[where.argsort()]


def test_each_token_has_the_loss_that_it_has_in_one_process(make: Make, tmp_path: Path) -> None:
    rows = make(drawn_lengths(60, 149, 4), rows={"strategy": "bfd", "sequence_length": LENGTH}) / "rows"
    alone, split = (losses(rows, tmp_path, size, apart=True) for size in (1, 2))
    assert (alone - split).abs().max() < 2e-6
    together = losses(rows, tmp_path, 2, apart=False)
    assert (alone - together).abs().max() > 1e-2, "where documents see each other, losses are others"

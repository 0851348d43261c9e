"""A run that stops trains what an uninterrupted one does: in each trainer, at each place, also at ends of passes."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import packtool
from tests.test_docs import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402
from tests.torch.test_frameworks import lightning_model, lightning_trainer, transformers_trainer  # noqa: E402

BATCHES = 6
"""Batches of a pass over the rows, whose last rows fill no batch."""
Rows = list[list[int]]
AFTER = 0.5
"""Added to a step at which a pass ends: stopped there after the loop was asked for one batch more."""


class Stopped(Exception):
    """A run stopped where it was told to."""


class Run:
    """A part of a run.

    Attributes:
        loader: makes the loader of this rank; `epochs` as in `Loader`.
        epochs: of the run.
        stop: the step after which it stops; None for the end.
        resume, save: files or directories of checkpoints; None to begin anew.
        seen: the rows of all steps.
    """

    def __init__(
        self, loader: Callable[..., Loader], epochs: int, stop: float | None, resume: Path | None, save: Path
    ) -> None:
        self.loader, self.epochs, self.stop, self.resume, self.save = loader, epochs, stop, resume, save
        self.seen: Rows = []

    def restored(self, loader: Loader) -> dict[str, Any]:
        if self.resume is None:
            return {"step": 0, "epoch": 0}
        state: dict[str, Any] = torch.load(self.resume)
        loader.load_state_dict(state["loader"])
        return state

    def step(self, loader: Loader, batch: Any, step: float, epoch: int) -> None:
        self.seen += batch["input_ids"].tolist()
        self.end(loader, step, epoch)

    def end(self, loader: Loader, step: float, epoch: int) -> None:
        if step == self.stop:
            torch.save({"loader": loader.state_dict(), "step": int(step), "epoch": epoch}, self.save)
            raise Stopped


def one_pass(run: Run) -> None:
    """As training.md has it: all epochs are one pass."""
    loader = run.loader(epochs=run.epochs)
    step = run.restored(loader)["step"]
    loader.set_epoch(0)
    for batch in loader:
        step += 1
        run.step(loader, batch, step, 0)
    run.end(loader, step + AFTER, 0)


def saved_epochs(run: Run) -> None:
    """With the number of the epoch in the checkpoint."""
    loader = run.loader()
    state = run.restored(loader)
    step = state["step"]
    for epoch in range(state["epoch"], run.epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            step += 1
            run.step(loader, batch, step, epoch)
        run.end(loader, step + AFTER, epoch + 1)


def counted_epochs(run: Run) -> None:
    """As with Accelerate: the epoch follows from the step, and nobody calls `set_epoch`."""
    accelerate = pytest.importorskip("accelerate")
    loader = accelerate.Accelerator(cpu=True).prepare(run.loader())
    step = run.restored(loader)["step"]
    for epoch in range(step // BATCHES, run.epochs):
        for batch in loader:
            step += 1
            run.step(loader, batch, step, epoch)
        run.end(loader, step + AFTER, epoch + 1)


def torchtitan(run: Run) -> None:
    """The class of examples/train, whose run is one pass."""
    from torchtitan_main import PackedDataLoader

    loader = PackedDataLoader.__new__(PackedDataLoader)  # its `Config` makes the same loader from torchtitan's words
    loader.loader = run.loader(epochs=run.epochs)
    step = 0
    if run.resume is not None:
        state = torch.load(run.resume)
        step = state["step"]
        loader.load_state_dict(state["loader"])
    for batch in loader.loader:
        step += 1
        run.step(loader.loader, batch, step, 0)
    run.end(loader.loader, step + AFTER, 0)


def accumulated(run: Run) -> None:
    """Turns of a few rows: a step is taken behind the last turn of a global batch."""
    loader = run.loader(epochs=run.epochs, micro_batch_size=3)
    step = run.restored(loader)["step"]
    loader.set_epoch(0)
    consumed = loader.consumed
    for batch in loader:
        run.seen += batch["input_ids"].tolist()
        if loader.consumed > consumed:
            consumed = loader.consumed
            step += 1
            run.end(loader, step, 0)
    run.end(loader, step + AFTER, 0)


def transformers(run: Run) -> None:
    transformers = pytest.importorskip("transformers")

    class Stop(transformers.TrainerCallback):  # type: ignore[misc,name-defined]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == run.stop:
                control.should_save = control.should_training_stop = True

    options = {"num_train_epochs": run.epochs, "save_strategy": "no", "callbacks": [Stop()]}
    trainer = transformers_trainer(run.loader(labels="same"), run.save, run.seen, **options)
    checkpoint = None if run.resume is None else str(next(run.resume.glob("checkpoint-*")))
    trainer.train(resume_from_checkpoint=checkpoint)


def lightning(run: Run) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    from packtool.torch.lightning import CountBatches

    loader = run.loader()
    ends = {"max_epochs": run.epochs, "max_steps": -1 if run.stop is None else int(run.stop)}
    when: dict[str, Any] = {"every_n_epochs": 1, "save_on_train_epoch_end": True}
    if run.stop is None or run.stop == int(run.stop):
        when = {"every_n_train_steps": int(run.stop or 1)}
    save = lightning.callbacks.ModelCheckpoint(dirpath=run.save.parent, filename=run.save.name, **when)
    callbacks = [CountBatches(), save]
    trainer = lightning_trainer(run.save.parent, use_distributed_sampler=False, callbacks=callbacks, **ends)
    checkpoint = None if run.resume is None else run.resume.with_name(f"{run.resume.name}.ckpt")
    seen: dict[tuple[str, int], Rows] = {}
    trainer.fit(lightning_model(seen), loader, ckpt_path=checkpoint)
    for rows in seen.values():
        run.seen += rows


PROGRAMS = (one_pass, saved_epochs, counted_epochs, accumulated, torchtitan, transformers, lightning)
OF_ONE_PASS = (one_pass, accumulated, torchtitan)


def trained(program: Callable[[Run], None], rows: Path, place: Path, epochs: int, parts: list[tuple[Any, int]]) -> Rows:
    """The rows that a run trains in parts: where each stops, and on how many ranks it is."""
    seen: Rows = []
    resume = None
    for number, (stop, world) in enumerate(parts):
        shares = []
        for rank in range(world):

            def made(rank: int = rank, world: int = world, **options: Any) -> Loader:
                options = {"fields": ("input_ids", "labels"), **options}
                return Loader(rows, batch_size=16, rank=rank, world_size=world, **options)

            run = Run(made, epochs, stop, resume, place / f"{number}-{rank}")
            with suppress(Stopped):
                program(run)
            shares.append(run.seen)
        resume = place / f"{number}-0"
        seen += [row for rows_of_ranks in zip(*shares, strict=True) for row in rows_of_ranks]
    return seen


def stops(program: Callable[[Run], None], epochs: int) -> Iterator[list[tuple[Any, int]]]:
    """Where a run of so many epochs stops, once and twice, on the same ranks and on others."""
    last = epochs * BATCHES
    after = [BATCHES + AFTER, last + AFTER]
    if program in OF_ONE_PASS:
        after = [last + AFTER]
    if program is transformers:  # it saves after steps alone
        after = []
    for stop in dict.fromkeys([1, BATCHES // 2, BATCHES, last, *after]):
        yield [(stop, 1), (None, 2)]
        later = [each for each in (int(stop) + 1, BATCHES, last) if stop < each <= last]
        for second in dict.fromkeys(later[-2:]):
            yield [(stop, 2), (second, 1), (None, 1)]
        yield [(stop, 1), (None, 1)]


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_stopped_run_trains_the_same(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Callable[[Run], None], epochs: int
) -> None:
    for place in (ROOT / "examples" / "train", Path(__file__).parent / "titan"):
        monkeypatch.syspath_prepend(str(place))
    rows = rows.with_name("longer")
    assert len(Loader(rows, batch_size=16)) == BATCHES
    assert len(packtool.open(rows)) > 16 * BATCHES
    if program in OF_ONE_PASS:
        every = [row for number in range(epochs) for row in packtool.open(rows).epoch(number)[:].tolist()]  # type: ignore[union-attr]
        whole = every[: len(every) // 16 * 16]
    else:
        whole = [row for n in range(epochs) for row in packtool.open(rows).epoch(n)[: 16 * BATCHES].tolist()]  # type: ignore[union-attr]
    for number, parts in enumerate(stops(program, epochs)):
        place = tmp_path / f"{number}"
        place.mkdir()
        with warnings.catch_warnings(action="ignore"):
            assert trained(program, rows, place, epochs, parts) == whole, parts

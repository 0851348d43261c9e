"""Train with Lightning: a callback with which a run goes on exactly, also with another batch size.

>>> from packtool.torch.lightning import CountBatches                              # doctest: +SKIP
>>> trainer = Trainer(use_distributed_sampler=False, callbacks=[CountBatches()])   # doctest: +SKIP
>>> trainer.fit(model, loader, valid, ckpt_path=checkpoint)                        # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback

from packtool.errors import UsageError
from packtool.torch.loader import Loader
from packtool.torch.validation import ValidationLoader


class CountBatches(Callback):  # type: ignore[misc,unused-ignore]
    """Tells Lightning how many batches of the present size lie before the place of a checkpoint.

    Lightning saves the state of the `Loader` itself, but ends an epoch by the number of batches that it counted. These
    may have had another size: without this callback rows would be left out, or an epoch too many begun. It also warns
    of a validation whose documents are trained on.

    Raises:
        UsageError: when a run goes on, and trains on something else than a `Loader`.
    """

    def __init__(self) -> None:
        self._resumed: dict[str, Any] | None = None  # what the checkpoint of the run has of its loop

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        del trainer, pl_module
        self._resumed = checkpoint["loops"]["fit_loop"]

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # Only now there is a loader that was made in train_dataloader.
        del pl_module
        loader, validations = trainer.train_dataloader, trainer.val_dataloaders
        if not isinstance(validations, list | tuple):
            validations = [validations]
        for valid in validations:
            if isinstance(loader, Loader) and isinstance(valid, ValidationLoader):
                valid.warn_of_trained(loader)
        if self._resumed is None:
            return
        if not isinstance(loader, Loader):
            what = f"it counts batches of a Loader, and the run trains on a {type(loader).__name__}"
            raise UsageError("bad-option", what, remedy="leave the callback out", where="CountBatches")
        # Lightning has set a pass since, and the run may have ended it.
        loader.load_state_dict(self._resumed["state_dict"]["combined_loader"][0])
        passed = len(loader) - loader.remaining
        epochs = self._resumed["epoch_progress"]["current"]
        if epochs["processed"] == epochs["ready"]:  # saved when an epoch was over: the next has passed nothing
            passed = 0
        counts = trainer.fit_loop.epoch_loop.batch_progress.current
        missing = passed - counts.ready
        for name in ("ready", "started", "processed", "completed"):
            setattr(counts, name, getattr(counts, name) + missing)
        self._resumed = None

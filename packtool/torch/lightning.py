"""Train with Lightning: a callback with which a run goes on exactly, also with another batch size.

>>> from packtool.torch.lightning import CountBatches                              # doctest: +SKIP
>>> trainer = Trainer(use_distributed_sampler=False, callbacks=[CountBatches(loader)])    # doctest: +SKIP
>>> trainer.fit(model, loader, valid, ckpt_path=checkpoint)                        # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback

from packtool.torch.loader import Loader


class CountBatches(Callback):  # type: ignore[misc,unused-ignore]
    """Tells Lightning how many batches of the present size lie before the place of a checkpoint.

    Lightning saves the loader's state itself, but ends an epoch by the number of batches that it counted. These may
    have had another size: without this callback rows would be left out, or an epoch too many begun.

    Args:
        loader: that is given to `Trainer.fit`.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        del trainer, pl_module
        progress = checkpoint["loops"]["fit_loop"]
        self._loader.load_state_dict(progress["state_dict"]["combined_loader"][0])
        counts = progress["epoch_loop.batch_progress"]["current"]
        epochs = progress["epoch_progress"]["current"]
        had = len(self._loader) - self._loader.remaining
        if epochs["processed"] == epochs["ready"]:  # saved when an epoch was over: the next one has had nothing
            had = 0
        counts.update({name: count + had - counts["ready"] for name, count in counts.items()})

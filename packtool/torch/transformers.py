"""Train with the Trainer of Transformers: exact resuming, validation, and the loss of each source.

>>> from packtool.torch.transformers import PackedTrainer                          # doctest: +SKIP
>>> loader = Loader("train", batch_size=64, labels="same", fields=FIELDS)          # doctest: +SKIP
>>> trainer = PackedTrainer(loader, model=model, args=TrainingArguments("run"))    # doctest: +SKIP
>>> trainer.train(resume_from_checkpoint=True)                                     # doctest: +SKIP
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import Trainer, TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from packtool.errors import DataError
from packtool.reading.batch import IGNORED
from packtool.torch.loader import Loader

FIELDS = ("input_ids", "labels", "position_ids")
"""The fields of a batch that a causal model of Transformers takes; `PackedTrainer` takes `source` beside them."""
PLACE = "loader.json"
"""The file of a checkpoint that has the loader's state."""


class PackedTrainer(Trainer):  # type: ignore[misc,unused-ignore]
    """A Trainer that trains on a `Loader` and goes on exactly where a checkpoint was saved.

    The Trainer counts epochs in its own batches, so a run that goes on with another batch size needs `max_steps`. It
    shifts labels and counts targets itself: give the loader ``labels="same"`` and no `global_targets`.

    If batches have the field `source`, the loss of each source is logged beside the loss, as `loss/NAME`, and of a
    validation as `eval_loss/NAME`.

    Args:
        loader: the batches to train on; its `batch_size` is the global batch.
        options: of `Trainer`. As `eval_dataset` it takes a `ValidationLoader`, or several by name in a dictionary.
    """

    def __init__(self, loader: Loader, **options: Any) -> None:
        super().__init__(**options)
        self.loader = loader
        self.args.ignore_data_skip = True  # the loader finds its place itself
        self.add_callback(_SavePlace(loader))
        self._valid: Any = None  # what is validated on
        self._sums: dict[bool, Any] = {}  # while training or validating: (sources, 2), summed losses and targets

    def train(self, resume_from_checkpoint: str | bool | None = None, **options: Any) -> Any:
        """Train as `Trainer.train` does, after moving the loader to the place that the checkpoint has.

        Raises:
            DataError: the checkpoint has no place of a loader, or the place is of another dataset, order or seed.
        """
        if resume_from_checkpoint is True:
            resume_from_checkpoint = get_last_checkpoint(self.args.output_dir) or True  # the Trainer says what is amiss
        if isinstance(resume_from_checkpoint, str | Path):
            self.loader.load_state_dict(_place_in(Path(resume_from_checkpoint)))
        return super().train(resume_from_checkpoint=resume_from_checkpoint, **options)

    def get_train_dataloader(self) -> Any:
        return _Batches(self.loader)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        self._valid = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(eval_dataset, str):  # one of several, by its name
            self._valid = self.eval_dataset[eval_dataset]
        return self._valid

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **options: Any) -> Any:
        source = inputs.pop("source", None)
        if source is None:
            return super().compute_loss(model, inputs, return_outputs=return_outputs, **options)
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **options)
        with torch.no_grad():
            labels = inputs["labels"][:, 1:]  # the model shifts them
            losses = cross_entropy(
                outputs["logits"][:, :-1].transpose(1, 2).float(), labels, ignore_index=IGNORED, reduction="none"
            )
            sums = []
            for number in range(len(self._sources(model.training))):
                those = (source[:, 1:] == number) & (labels != IGNORED)
                sums.append(torch.stack([losses[those].sum(), those.sum()]))
            self._sums[model.training] = self._sums.get(model.training, 0) + torch.stack(sums)
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], *rest: Any) -> None:
        for logged in list(logs):
            training = logged == "loss"
            if not (training or logged.endswith("_loss")) or training not in self._sums:
                continue
            sums = self.accelerator.reduce(self._sums.pop(training)).tolist()
            for name, (loss, targets) in zip(self._sources(training), sums, strict=True):
                if targets:
                    logs[f"{logged}/{name}"] = loss / targets
        super().log(logs, *rest)

    def _sources(self, training: bool) -> list[str]:
        """Return the names of the sources of batches."""
        return list(self.loader.sources if training else self._valid.sources)


class _Batches:
    """The batches of a loader, without its `set_epoch`: the Trainer counts epochs in batches of the present size."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)


class _SavePlace(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Writes the place of a loader into each checkpoint, in the process that writes the checkpoint."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if args.should_save:
            place = Path(args.output_dir) / f"checkpoint-{state.global_step}" / PLACE
            place.write_text(json.dumps(self._loader.state_dict()))


def _place_in(checkpoint: Path) -> Any:
    """Read the loader's state from a checkpoint."""
    try:
        return json.loads((checkpoint / PLACE).read_text())
    except (OSError, ValueError) as error:
        what, remedy = f"no place of a loader ({error})", "resume from a checkpoint that PackedTrainer saved"
        raise DataError("bad-state", what, remedy=remedy, where=str(checkpoint)) from None

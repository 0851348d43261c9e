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
from transformers.utils import logging

from packtool.errors import DataError, UsageError
from packtool.reading.batch import IGNORED
from packtool.torch.apart import check_apart
from packtool.torch.kernels import flat, with_cu_seq_lens
from packtool.torch.labels import TensorBatch
from packtool.torch.loader import Loader
from packtool.torch.validation import ValidationLoader

FIELDS = ("input_ids", "labels", "position_ids")
"""The fields of a batch that a causal model of Transformers takes; `PackedTrainer` takes `source` beside them."""
PLACE = "loader.json"
"""The file of a checkpoint that has the loader's state."""
CHECKED = 16
"""In so many batches a row of two documents is looked for."""
_logger = logging.get_logger(__name__)


class PackedTrainer(Trainer):  # type: ignore[misc,unused-ignore]
    """A Trainer that trains on a `Loader` and goes on exactly where a checkpoint was saved.

    The Trainer counts epochs in its own batches, so a run that goes on with another batch size needs `max_steps`. It
    shifts labels and counts targets itself: give the loader ``labels="same"`` and no `global_targets`.

    Before the first step `check_apart` tries whether the model keeps documents of a row apart, and a line says what it
    found. For models that attend by FlashAttention batches have where documents begin, as of `with_cu_seq_lens`.

    If batches have the field `source`, the loss of each source is logged beside the loss, as `loss/NAME`, and of a
    validation as `eval_loss/NAME`.

    Args:
        loader: the batches to train on; its `batch_size` is the global batch. It may also be set before `train`, as
            the attribute of this name.
        flat: lay the rows of a batch end to end, for training and validation, as of `packtool.torch.flat`.
        check: raise an error if documents see each other.
        options: of `Trainer`. As `eval_dataset` it takes a `ValidationLoader`, or several by name in a dictionary.

    Raises:
        UsageError: the labels of a loader are not ``same``; `global_targets` is among its fields; while it trains,
            documents see each other.
    """

    def __init__(self, loader: Loader | None = None, *, flat: bool = False, check: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self._loader = loader
        if loader is not None:
            self.loader = loader
        self.args.ignore_data_skip = True  # the loader finds its place itself
        self.add_callback(_Resuming(self))
        self._random_from: str | None = None  # the checkpoint whose random numbers the next step begins with
        self._flat = flat
        self._flash = "flash" in (getattr(getattr(self.model, "config", None), "_attn_implementation", None) or "")
        self._unchecked = CHECKED if check else 0  # batches in which rows of two documents are looked for
        self._valid: Any = None  # what is validated on
        self._sums: dict[bool, Any] = {}  # while training or validating: (sources, 2), summed losses and targets
        for valid in self._validations():
            _require_suited(valid, "eval_dataset")

    @property
    def loader(self) -> Loader:
        """The batches to train on.

        Raises:
            UsageError: none was given.
        """
        if self._loader is None:
            what, remedy = "there are no batches to train on", "set trainer.loader before training"
            raise UsageError("missing-option", what, remedy=remedy, where="loader")
        return self._loader

    @loader.setter
    def loader(self, loader: Loader) -> None:
        _require_suited(loader, "loader")
        self._loader = loader

    def train(self, resume_from_checkpoint: str | bool | None = None, *rest: Any, **options: Any) -> Any:
        """Train as `Trainer.train` does, after moving the loader to the place that the checkpoint has.

        Raises:
            DataError: the checkpoint has no place of a loader, or the place is of another dataset, order or seed.
        """
        if resume_from_checkpoint is True:
            resume_from_checkpoint = get_last_checkpoint(self.args.output_dir) or True  # the Trainer says what is amiss
        if isinstance(resume_from_checkpoint, str | Path):
            self.loader.load_state_dict(_place_in(Path(resume_from_checkpoint)))
            self._random_from = str(resume_from_checkpoint)
        for valid in self._validations():
            if isinstance(valid, ValidationLoader):
                valid.warn_of_trained(self.loader)
        return super().train(resume_from_checkpoint, *rest, **options)

    def _validations(self) -> list[Any]:
        """Return what is validated on, by default."""
        if isinstance(self.eval_dataset, dict):
            return list(self.eval_dataset.values())
        return [self.eval_dataset]

    def take_random_numbers(self) -> None:
        """Take those of the checkpoint that a run resumes from, once it has its first batch."""
        if self._random_from is not None:
            self._load_rng_state(self._random_from)
            self._random_from = None

    def get_train_dataloader(self) -> Any:
        return _Batches(self.loader)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        own: Any = self.eval_dataset
        if eval_dataset is None:
            eval_dataset = own
        elif isinstance(eval_dataset, str):  # one of several, by its name
            eval_dataset = own[eval_dataset]
        return self._validated_on(eval_dataset, "eval_dataset")

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        return self._validated_on(test_dataset, "test_dataset")

    def _validated_on(self, valid: Any, where: str) -> Any:
        """Return the batches of a validation, and have its losses from now on counted by source."""
        _require_suited(valid, where)
        self._valid = valid
        self._sums.pop(False, None)
        return valid

    def _prepare_inputs(self, inputs: Any) -> Any:
        if len(inputs["input_ids"]) == 0:
            what, remedy = "a rank has no row of a batch", "give the loader drop_last=True, or fill=True"
            raise UsageError("bad-option", what, remedy=remedy, where="loader")
        # Before they are moved to a device, which would wait for where documents begin.
        if self._flat:
            inputs = flat(inputs)
        elif self._flash and "position_ids" in inputs:
            inputs = with_cu_seq_lens(inputs)
        return super()._prepare_inputs(inputs)

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        source = inputs.pop("source", None)
        if self._unchecked and model.training:
            self._check(model, inputs)
        if source is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
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

    def _check(self, model: Any, inputs: Any) -> None:
        """Require that documents of a row are apart, or say why nothing is known of it."""
        self._unchecked -= 1
        finding = ""
        if {"position_ids", "document_ids"}.isdisjoint(inputs):
            finding = "may see each other: batches have no position_ids, which say where documents begin"
        elif check_apart(model, inputs):
            finding = "do not see each other in this model, tried on a batch"
        elif not self._unchecked:
            finding = f"were not compared: no row of {CHECKED} batches has two"
        if finding:
            self._unchecked = 0
            if self.is_world_process_zero():
                _logger.warning(f"packtool: documents of a row {finding}")

    def log(self, logs: dict[str, float], *rest: Any) -> None:
        if "loss" in logs:
            logs.update(self._losses_of_sources("loss", training=True))
        super().log(logs, *rest)

    def evaluation_loop(self, *parts: Any, **options: Any) -> Any:
        output: Any = super().evaluation_loop(*parts, **options)
        prefix = options.get("metric_key_prefix", "eval")
        output.metrics.update(self._losses_of_sources(f"{prefix}_loss", training=False))
        return output

    def _losses_of_sources(self, name: str, *, training: bool) -> dict[str, float]:
        """Return the mean loss of each source since they were last asked for, as ``name/SOURCE``."""
        losses: dict[str, float] = {}
        if training not in self._sums:
            return losses
        sums = self.accelerator.reduce(self._sums.pop(training)).tolist()
        for source, (loss, targets) in zip(self._sources(training), sums, strict=True):
            if targets:
                losses[f"{name}/{source}"] = loss / targets
        return losses

    def _sources(self, training: bool) -> list[str]:
        """Return the names of the sources of batches."""
        return list(self.loader.sources if training else self._valid.sources)


class _Batches:
    """The batches of a loader, without its `set_epoch`: the Trainer counts epochs in batches of the present size."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[TensorBatch]:
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)


class _Resuming(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Writes the place of a trainer's loader into each checkpoint, in the process that writes the checkpoint.

    A resumed run begins with the random numbers of its checkpoint, which the Trainer takes only where it skips batches.
    """

    def __init__(self, trainer: PackedTrainer) -> None:
        self._trainer = trainer

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._trainer.take_random_numbers()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if args.should_save:
            place = Path(args.output_dir) / f"checkpoint-{state.global_step}" / PLACE
            place.write_text(json.dumps(self._trainer.loader.state_dict()))


def _require_suited(batches: Any, where: str) -> None:
    """Refuse a loader whose batches a Trainer would understand otherwise."""
    if not isinstance(batches, Loader | ValidationLoader):
        return
    if batches.labels != "same":
        what = "its labels are the next tokens, and the model shifts labels once more, to the tokens after the next"
        raise UsageError("bad-option", what, remedy="give it labels='same'", where=where)
    if batches.counts_targets:
        what, remedy = "global_targets is among its fields, and the Trainer counts targets itself", "leave it out"
        raise UsageError("bad-option", what, remedy=remedy, where=where)


def _place_in(checkpoint: Path) -> Any:
    """Read the loader's state from a checkpoint."""
    try:
        return json.loads((checkpoint / PLACE).read_text())
    except (OSError, ValueError) as error:
        what, remedy = f"no place of a loader ({error})", "resume from a checkpoint that PackedTrainer saved"
        raise DataError("bad-state", what, remedy=remedy, where=str(checkpoint)) from None

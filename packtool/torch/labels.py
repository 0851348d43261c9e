"""The kind of labels of a batch, as its type: functions that move a batch to a device keep its type."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias


class NextLabels(dict[str, Any]):
    """A batch in which the label at a place is the token after it, for a loss on all outputs of the model."""


class SameLabels(dict[str, Any]):
    """A batch in which the label at a place is its own token, for models that shift labels themselves.

    The models of `transformers` whose names end in ``ForCausalLM`` do, when they are given `labels`.
    """


TensorBatch: TypeAlias = NextLabels | SameLabels

KINDS: dict[Literal["next", "same"], type[TensorBatch]] = {"next": NextLabels, "same": SameLabels}
"""The type of a batch for each value of the option `labels`."""

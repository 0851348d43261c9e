"""Estimate what rows cost to train on: floating-point operations of linear layers and attention, by model size."""

from __future__ import annotations

from dataclasses import dataclass

from packtool.metrics.summary import Metrics

_ASPECT = 128
"""Width of a layer / layers, where only the parameters are known: about that of published models."""


@dataclass(frozen=True, slots=True)
class TrainingCost:
    """Floating-point operations of one epoch, forward and backward, padding included.

    Attributes:
        parameters: of the model, N.
        layers: of a decoder of this size that is 128 times as wide as it is deep, (N / 12 / 128²)^(1/3).
        width: of its layers, 128 × layers.
        linear: 6 N for each token of the output.
        attention: 12 × layers × width for each query-key pair of causal attention over whole rows.
        attention_masked: the same where a token sees only its own segment.
    """

    parameters: int
    layers: int
    width: int
    linear: float
    attention: float
    attention_masked: float


def training_cost(metrics: Metrics, output_tokens: int, parameters: int) -> TrainingCost:
    """Estimate the cost of an epoch for a decoder-only transformer.

    Per token, a multiplication and an addition for each parameter forward, twice that backward: 6 N. Per query-key pair
    and layer, 2 × width operations for the score and as many for the value forward, twice that backward: 12 × width.
    Both are the usual estimates; embeddings, norms and recomputation are not in them.

    Args:
        metrics: of the rows.
        output_tokens: rows × sequence length.
        parameters: of the model, without embeddings.
    """
    layers = max(1, round((parameters / (12 * _ASPECT**2)) ** (1 / 3)))
    width = _ASPECT * layers
    return TrainingCost(
        parameters=parameters,
        layers=layers,
        width=width,
        linear=6.0 * parameters * output_tokens,
        attention=12.0 * layers * width * metrics.attention_full,
        attention_masked=12.0 * layers * width * metrics.attention_masked,
    )

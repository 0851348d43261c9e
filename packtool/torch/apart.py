"""Whether documents of a row stay apart in a model: change a document, and compare what the model makes of the next.

A model that keeps documents apart computes the same numbers for a document, whatever stands before it in the row.
Attention takes this from a mask or from boundaries. Convolutions, recurrent and state-space layers take it from
arguments of their kernels, or not at all. Nothing in a run says so: the loss falls as ever.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
import torch.distributed
from torch import Tensor, nn

from packtool.errors import UsageError
from packtool.reading.batch import IGNORED

# Few numbers are kept, however large batch and model are.
_DOCUMENTS = 8  # that are compared at most, spread over the batch
_PLACES = 8  # first places of a document that are compared, beside its last; and places before a row's first change
_TIMES_NOISE = 10  # a change that means something is larger than so many times the noise


class _Places(NamedTuple):
    """Which tokens are changed, and where numbers are compared: places in the rows laid end to end."""

    changed: Tensor
    before: Tensor  # what changes here is noise: nothing causal reads tokens that come later
    after: Tensor  # in documents that keep their tokens, each after a document that is changed


class _Numbers(NamedTuple):
    """Numbers of a model at the places that are compared, (places, …), on the CPU."""

    before: Tensor
    after: Tensor


class _Call(NamedTuple):
    """What a module was given and gave, in one of its calls."""

    rounds: bool  # it has experts, which get other numbers of tokens, so that their sums may be rounded otherwise
    given: list[_Numbers]
    gave: _Numbers


Calls = dict[tuple[str, int], _Call]
"""Calls by the name of the module and the number of its call, inner modules before outer ones; the model, "", last."""


def check_apart(model: Callable[..., Any], batch: Mapping[str, Any], **options: Any) -> bool:
    """Raise an error if documents of a row see each other in a causal model.

    The model is called twice: with the batch, and with other tokens in every other document, whose first half and last
    token stay. What it computes for the documents between must not change by more than noise: what changes before the
    first of these tokens, and where a third call, with the batch as it is, differs from the first.

    The model is called as it trains, in the mode that it is in, but without gradients, uncompiled, and with the same
    random numbers each time. Buffers and random numbers are afterwards as they were. In `torch.distributed` call it on
    all ranks at the same step: they agree.

    Args:
        model: also wrapped, sharded or compiled; or a function that returns logits, (rows, T, …).
        batch: the keywords that the model gets in training. `document_ids` or `position_ids` say where documents
            begin. Documents without `labels` are padding. The model gets `labels` only if it can't do without.
        options: more keywords for the model, as training gives them: of Transformers ``use_cache=False``.

    Returns:
        Whether the batch of any rank has a row of two documents, so that there was something to compare.

    Raises:
        UsageError: documents see each other; nothing says where documents begin; the model gives no logits.

    >>> batch = {"input_ids": torch.tensor([[5, 6, 7, 8, 9, 5, 6]])}
    >>> batch["document_ids"] = torch.tensor([[0, 0, 0, 0, 0, 1, 1]])
    >>> def sums(input_ids, document_ids):
    ...     return input_ids.cumsum(1)[..., None].float()
    >>> check_apart(sums, batch)                     # doctest: +ELLIPSIS
    Traceback (most recent call last):
    packtool.errors.UsageError: sums: documents of a row see each other. Give the model position_ids, ...
    """
    places, device = _places(batch), batch["input_ids"].device
    if not _on_any_rank(places is not None, device):
        return False
    inner = _unwrapped(model)
    if places is None:  # this rank computes along: ranks may share the model
        nowhere = torch.empty(0, dtype=torch.int64)
        places = _Places(nowhere, nowhere, nowhere)
    inputs = {**_inputs(inner, batch, places), **options}
    with _unchanged(inner):
        first = _calls(model, inner, inputs, places)
        other = _calls(model, inner, {**inputs, "input_ids": _other_tokens(batch["input_ids"], places)}, places)
        mixing = _mixing(first, other)
        if _on_any_rank(bool(mixing), device):
            again = _calls(model, inner, inputs, places)
            mixing = [key for key in mixing if not _is_noise(first[key], other[key], again.get(key))]
    if not _on_any_rank(bool(mixing), device):
        return True
    raise _mixed(inner, [name for name, _ in mixing])


def begins(batch: Mapping[str, Any]) -> Tensor:
    """Mark the places of a batch where a document begins; the first place of a row is one.

    Args:
        batch: with `document_ids` or `position_ids`, (rows, T).

    Returns:
        (rows, T) bool.

    Raises:
        UsageError: no field says where documents begin.
    """
    if "document_ids" in batch:
        document: Tensor = batch["document_ids"]
        starts = document != document.roll(1, -1)
    elif "position_ids" in batch:
        position: Tensor = batch["position_ids"]
        starts = position == 0
    else:
        what, remedy = "no field says where documents begin", "give the batch position_ids or document_ids"
        raise UsageError("missing-option", what, remedy=remedy, where="batch")
    starts[:, 0] = True
    return starts


def _places(batch: Mapping[str, Any]) -> _Places | None:
    """Choose what is changed and compared; None if no row has two documents, the first of three tokens or more."""
    starts, ids = begins(batch).cpu(), batch["input_ids"].cpu()
    trains = torch.ones_like(starts)
    if "labels" in batch:
        trains &= batch["labels"].cpu() != IGNORED
    if "document_ids" in batch:
        trains &= batch["document_ids"].cpu() >= 0
    length = ids.shape[1]
    changed: list[Tensor] = []
    before: list[Tensor] = []
    after: list[Tensor] = []
    for row in range(len(ids)):
        begin_of_row = row * length
        middle = first_middle = None  # of the document before, if it is changed; of the first that is, in this row
        bounds = [*starts[row].nonzero()[:, 0].tolist(), length]
        for first, end in itertools.pairwise(bounds):
            # In a batch that doesn't say so, a run of one token is padding.
            padding = not trains[row, first:end].any() or (ids[row, first:end] == ids[row, first]).all()
            if padding:
                middle = None
            elif middle is not None:
                changed.append(begin_of_row + torch.arange(middle, first - 1))
                after.append(begin_of_row + torch.tensor([*range(first, min(first + _PLACES, end - 1)), end - 1]))
                first_middle, middle = first_middle or middle, None
            elif end - first > 2:
                middle = (first + end) // 2
        if first_middle is not None:
            before.append(begin_of_row + torch.arange(max(0, first_middle - _PLACES), first_middle))
    if not changed:
        return None
    spread = torch.linspace(0, len(after) - 1, _DOCUMENTS).round().int().unique()
    compared = [after[number] for number in spread.tolist()]
    return _Places(torch.cat(changed), torch.cat(before[:_DOCUMENTS]), torch.cat(compared))


def _other_tokens(ids: Tensor, places: _Places) -> Tensor:
    """Return the ids with other tokens at the places that are changed, each of another id than before.

    They are tokens of the batch, since others may stand for an image, or be unknown to the model.
    """
    distinct, number = ids.unique(return_inverse=True)
    changed = places.changed.to(ids.device)
    other = ids.flatten().clone()
    other[changed] = distinct[(number.flatten()[changed] + 1) % len(distinct)]
    return other.reshape(ids.shape)


def _inputs(inner: Any, batch: Mapping[str, Any], places: _Places) -> dict[str, Any]:
    """Return the keywords for the model: no labels, and, where it can, logits in the compared columns alone.

    Logits of a whole batch may take more memory than a step of training, which may never have them at once.
    """
    inputs = dict(batch)
    parameters = inspect.signature(type(inner).forward if isinstance(inner, nn.Module) else inner).parameters
    labels = parameters.get("labels")
    if labels is None or labels.default is not inspect.Parameter.empty:
        inputs.pop("labels", None)
        if "logits_to_keep" in parameters:
            inputs["logits_to_keep"] = _columns(batch["input_ids"], places).to(batch["input_ids"].device)
    return inputs


def _columns(ids: Tensor, places: _Places) -> Tensor:
    """Return the places in a row, ascending, at which numbers of any row are compared; one, if none are."""
    compared = torch.cat([places.before, places.after]) % ids.shape[1]
    return compared.unique() if len(compared) else torch.zeros(1, dtype=torch.int64)


@contextmanager
def _unchanged(inner: Any) -> Iterator[None]:
    """Compute without gradients, and without compiled code, which would not see hooks; put buffers back at the end."""
    modules = list(inner.modules()) if isinstance(inner, nn.Module) else []
    compiled = any(hasattr(module, "_orig_mod") or module._compiled_call_impl is not None for module in modules)
    buffers = []
    for module in modules:
        for name, buffer in module.named_buffers(recurse=False):
            buffers.append((module, name, buffer, buffer.clone()))
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager") if compiled else nullcontext():
            yield
    finally:
        for module, name, buffer, before in buffers:
            if not torch.equal(buffer, before):
                buffer.copy_(before)
            setattr(module, name, buffer)
        torch.clear_autocast_cache()  # training must not take what was cast here, without gradients


def _calls(model: Any, inner: Any, inputs: Mapping[str, Any], places: _Places) -> Calls:
    """Call the model, and return what its modules and the model itself gave."""
    ids = inputs["input_ids"]
    calls: Calls = {}

    def hook(name: str, rounds: bool) -> Callable[..., None]:
        def see(_: nn.Module, args: Any, kwargs: Any, out: Any) -> None:
            gave = _numbers(out, ids, places)
            if gave is None:
                return
            inputs = [_numbers(value, ids, places) for value in (*args, *kwargs.values())]
            number = sum(name == earlier for earlier, _ in calls)
            given = [numbers for numbers in inputs if numbers is not None]
            calls[name, number] = _Call(rounds, given, gave)

        return see

    with ExitStack() as stack:
        stack.enter_context(_same_random(ids.device))
        if isinstance(inner, nn.Module):
            for name, module in inner.named_modules():
                if name:
                    handle = module.register_forward_hook(hook(name, _has_experts(module)), with_kwargs=True)
                    stack.callback(handle.remove)
        out = getattr(model, "_orig_mod", model)(**inputs)
    gave = _numbers(getattr(out, "logits", out), ids, places, inputs.get("logits_to_keep"))
    if gave is None:
        what, remedy = "it gives no logits of shape (rows, T, …)", "give a function that returns them"
        raise UsageError("bad-option", what, remedy=remedy, where=_name_of(inner))
    calls["", 0] = _Call(True, [], gave)
    return calls


@contextmanager
def _same_random(device: torch.device) -> Iterator[None]:
    """Put the random numbers of the CPU and of a device back at the end."""
    with torch.random.fork_rng([]):
        if device.type == "cpu":
            yield
            return
        generator = torch.get_device_module(device)
        state = generator.get_rng_state()
        try:
            yield
        finally:
            generator.set_rng_state(state)


def _numbers(value: Any, ids: Tensor, places: _Places, columns: Tensor | None = None) -> _Numbers | None:
    """Take the numbers of the places that are compared out of what a module was given or gave.

    Args:
        value: a tensor, or what has one as its first part.
        ids: (rows, T) of the batch.
        columns: places in a row that the tensor has numbers of; None for all T.

    Returns:
        None if the tensor has no numbers for each place.
    """
    if isinstance(value, Mapping):
        value = next(iter(value.values()), None)
    elif isinstance(value, tuple | list) and value:
        value = value[0]
    if not isinstance(value, Tensor) or not value.is_floating_point() or hasattr(value, "full_tensor"):
        return None  # of a tensor that is sharded a rank has a part
    rows, length = ids.shape
    before, after = places.before, places.after
    if columns is not None:
        length = len(columns)
        before, after = (
            part // ids.shape[1] * length + torch.searchsorted(columns.cpu(), part % ids.shape[1])
            for part in (before, after)
        )
    if value.shape[:2] == (rows, length):
        value = value.flatten(0, 1)
    if value.shape[:1] != (rows * length,):
        return None
    value = value.detach()
    return _Numbers(value[before.to(value.device)].cpu(), value[after.to(value.device)].cpu())


def _mixing(first: Calls, other: Calls) -> list[tuple[str, int]]:
    """Return the calls that made something else of the same, after the changed tokens, the innermost first."""
    differing = []
    for key, call in first.items():
        if key not in other or call.gave.after.numel() == 0:
            continue
        noise, change = _changes(call.gave, other[key].gave)
        for one, two in zip(call.given, other[key].given, strict=True):
            noise = max(noise, *_changes(one, two))
        # Without experts the same numbers give the same: then every change means something, however small.
        least = 2 * torch.finfo(call.gave.after.dtype).eps if call.rounds or noise else 0.0
        if change > _TIMES_NOISE * noise + least:
            differing.append(key)
    return differing


def _mixed(inner: Any, names: Sequence[str]) -> UsageError:
    """Return the error that names a module and all ways out, since the name doesn't tell which of them helps.

    Args:
        names: of the modules that mix, the innermost first; none if they are on another rank.
    """
    by = ""
    if not names:
        by = ", on another rank"
    elif names[0]:  # the model itself has none
        by = f", by {names[0]} ({_name_of(inner.get_submodule(names[0]))})"
    remedy = (
        "give the model position_ids, use_cache=False and no attention_mask, for FlashAttention also "
        "with_cu_seq_lens(batch), for kernels of other layers flat(batch) (PackedTrainer: flat=True); or pack with "
        "--max-documents-per-row=1; or, where they may see each other, give the loader documents=False, or leave the "
        "check out (PackedTrainer: check=False)"
    )
    return UsageError("documents-mixed", f"documents of a row see each other{by}", remedy=remedy, where=_name_of(inner))


def _is_noise(first: _Call, other: _Call, again: _Call | None) -> bool:
    """Return whether the same batch, given again, changes what a call gives about as much as other tokens do."""
    if again is None:
        return True
    return _changes(first.gave, other.gave)[1] <= _TIMES_NOISE * max(_changes(first.gave, again.gave))


def _changes(one: _Numbers, two: _Numbers) -> tuple[float, float]:
    """Return the largest changes before and after the changed tokens, in parts of the largest number."""
    sizes = [float(part.abs().max()) for part in one if part.numel()]
    size = max(sizes, default=0.0) or 1.0
    changes = []
    for before, after in zip(one, two, strict=True):
        same = (before == after).all()  # infinities, too, which have no difference
        changes.append(0.0 if same else float((before.float() - after.float()).abs().max()) / size)
    return changes[0], changes[1]


def _has_experts(module: nn.Module) -> bool:
    """Return whether tokens are dealt to experts inside a module."""
    kinds = [type(part).__name__.lower() for part in module.modules()]
    return any("expert" in kind or "moe" in kind for kind in kinds)


def _unwrapped(model: Any) -> Any:
    """Return the model inside what shares, compiles or adapts it."""
    while isinstance(model, nn.Module):
        inner = getattr(model, "_orig_mod", None) or getattr(model, "module", None)
        if not isinstance(inner, nn.Module):
            break
        model = inner
    base = getattr(model, "get_base_model", None)  # of PEFT
    return base() if callable(base) else model


def _name_of(model: Any) -> str:
    """Return the name of the class of a module, without what FSDP puts before it; or the name of a function."""
    if isinstance(model, nn.Module):
        return type(model).__name__.removeprefix("FSDP")
    return getattr(model, "__name__", type(model).__name__)


def _on_any_rank(flag: bool, device: torch.device) -> bool:
    """Return whether it is so on any rank."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return flag
    value = torch.tensor(int(flag), device=device)
    torch.distributed.all_reduce(value, torch.distributed.ReduceOp.MAX)
    return bool(value)

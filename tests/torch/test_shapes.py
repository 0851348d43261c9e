"""With `pad_cu_seqlens` boundaries have one shape in every batch of every epoch, or the loader is refused when made."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import UsageError
from packtool.planning.packing import STRATEGIES
from tests.making import Make, drawn_lengths

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402

LIMITED = [name for name, strategy in STRATEGIES.items() if strategy.takes("max_documents_per_row")]
ROW = 64


@pytest.fixture
def packed(make: Make) -> Callable[..., Path]:
    """Packs documents of 1 to 39 tokens."""

    def pack(**options: Any) -> Path:
        lengths = {} if "buckets" in options else {"sequence_length": ROW}
        return make(drawn_lengths(200, 39, 3, 1), rows={**lengths, **options}) / "rows"

    return pack


def shapes(loader: Loader, rows: int) -> set[tuple[int, ...]]:
    """The lengths of the boundaries of batches with so many rows."""
    names = ("cu_seqlens", "cu_seqlens_padded")
    return {
        tuple(len(batch[name]) for name in names if name in batch)
        for batch in islice(loader, 100)
        if len(batch["input_ids"]) == rows
    }


@pytest.mark.parametrize("multiple", [None, 4])
@pytest.mark.parametrize("most", [1, 3, 6])
@pytest.mark.parametrize("strategy", LIMITED)
def test_a_limit_of_documents_is_room_enough(
    packed: Callable[..., Path], strategy: str, most: int, multiple: int | None
) -> None:
    """Written, and packed anew for every epoch; padding after the documents has room, too."""
    buckets = "buckets" in STRATEGIES[strategy].accepts
    limits = {"max_documents_per_row": most, "document_multiple": multiple, "index_only": True}
    rows = packed(strategy=strategy, **limits, **({"buckets": (16, ROW)} if buckets else {}))
    batch: dict[str, Any] = {"batch_tokens": 256} if buckets else {"batch_size": 4}
    for options in ({}, {"repack": True}):
        loader = Loader(rows, pad_cu_seqlens=most, epochs=2, **batch, **options)
        found = shapes(loader, 4)
        room = 4 * most + 1 if multiple else 4 * (most + 1) + 1
        assert found == {(room, room) if multiple else (room,)}
    if most > 1:
        message = rf"pad_cu_seqlens: room for 1 document a row, but a row has up to {most}\. Give {most}, or pack with "
        with pytest.raises(UsageError, match=rf"{message}max_documents_per_row=1 in place of {most}\."):
            Loader(rows, pad_cu_seqlens=1, **batch, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "bfd"},
        {"strategy": "concat"},
        {"strategy": "seamless"},
        {"strategy": "padding"},
        {"strategy": "padding", "atom_size": 8},
        {"strategy": "bfd", "document_multiple": 4},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_rows_without_a_limit_are_counted(packed: Callable[..., Path], options: dict[str, Any]) -> None:
    """The smallest room that is taken is enough for every batch; whether padding lies in between, or is left apart."""
    rows = packed(**options)
    for fields in (None, ("input_ids", "cu_seqlens")):
        taken = 1
        while True:
            try:
                loader = Loader(rows, batch_size=1, shuffle=False, pad_cu_seqlens=taken, fields=fields)
                break
            except UsageError as error:
                assert str(error).startswith(f"pad_cu_seqlens: room for {taken} document")  # noqa: PT017
                between = "padding between them. Give " in str(error)
                assert between or f"or pack with max_documents_per_row={taken}." in str(error)  # noqa: PT017
                taken += 1
        assert len(shapes(loader, 1)) == 1
        blend = packtool.Blend({"one": rows})
        fields_of_blend = None if fields is None else (*fields, "source")
        assert len(shapes(Loader(blend, pad_cu_seqlens=taken, fields=fields_of_blend), 1)) == 1
        if taken > 1:
            with pytest.raises(UsageError, match="pad_cu_seqlens: room for"):
                Loader(blend, pad_cu_seqlens=taken - 1, fields=fields_of_blend)


@pytest.mark.parametrize("value", [0, -1, True, "8", 1.5])
def test_what_is_no_number_of_documents(rows: Path, value: Any) -> None:
    with pytest.raises(UsageError, match=f"pad_cu_seqlens: {value!r} is not a number of documents"):
        Loader(rows, pad_cu_seqlens=value)


def test_rows_that_are_one_sequence_each_need_no_room(rows: Path) -> None:
    loader = Loader(rows, batch_size=4, pad_cu_seqlens=1, documents=False)
    assert shapes(loader, 4) == {(9,)}
    assert len(next(iter(Loader(rows, pad_cu_seqlens=1, fields=("input_ids",)))))

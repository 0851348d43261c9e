"""The units and atoms of a stored bucket, for an order to be laid over them."""

from __future__ import annotations

from packtool.plan import I64, Plan
from packtool.storage.manifest import Bucket


class BucketPlan(Plan):
    """The plan of rows that are stored; subclasses say where their segments come from.

    Args:
        entry: of the bucket, from its manifest.
        sequence_length: tokens in a row.
        atom_offsets: first row of each atom, then the number of rows; None where atoms are uniform.
        atom_size: other atoms than the stored ones, for a stream in corpus order; None for the stored ones.
        tokens: tokens of that stream before padding; only used with `atom_size`.
    """

    def __init__(
        self, entry: Bucket, sequence_length: int, atom_offsets: I64 | None, atom_size: int | None, tokens: int
    ) -> None:
        if atom_size is None:
            super().__init__(
                sequence_length=sequence_length,
                unit=entry.unit,
                units=entry.units,
                atom_units=entry.atom_units or 1,
                atom_offsets=atom_offsets,
                last_atom_stays=entry.last_atom_stays,
            )
        else:
            unit = min(atom_size, sequence_length)
            super().__init__(
                sequence_length=sequence_length,
                unit=unit,
                units=-(-tokens // unit),
                atom_units=atom_size // unit,
                last_atom_stays=tokens % atom_size > 0,
            )

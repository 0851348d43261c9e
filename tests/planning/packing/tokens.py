"""Plans made visible: each row as text, or as documents, starts and lengths."""

from string import ascii_lowercase

import numpy as np

from packtool.planning.packing import PackOptions
from packtool.planning.packing import plan as make
from packtool.planning.plan import INSERTED_EOS, PADDING, Plan
from packtool.rows.layout import Layout
from tests.segments import listed


def render(plan: Plan, lengths: np.ndarray, order: np.ndarray | None = None) -> list[str]:
    """Rows of tokens: ``b3`` is token 3 of document 1, ``bE`` its EOS, ``E`` an inserted EOS, ``.`` padding.

    A repeated token has a dash: ``b3'``.
    """
    rows = []
    layout = Layout(plan, order)
    pieces = layout.segments(0, layout.rows)
    for row in range(pieces.groups):
        words = []
        for i in range(pieces.offsets[row], pieces.offsets[row + 1]):
            document, start, length = pieces.document[i], pieces.start[i], pieces.length[i]
            if document == PADDING:
                words += ["."] * length
            elif document == INSERTED_EOS:
                words += ["E"] * length
            else:
                name = ascii_lowercase[document]
                last = lengths[document] - 1
                tokens = [f"{name}E" if t == last else f"{name}{t}" for t in range(start, start + length)]
                words += [f"{token}'" if n < pieces.repeated[i] else token for n, token in enumerate(tokens)]
        rows.append(" ".join(words))
    return rows


def bins_of(only: Plan) -> list[list[tuple[int, int, int]]]:
    """Documents, starts and lengths of each row, in order."""
    return [[piece[:3] for piece in row] for row in listed(only.segments(np.arange(only.units)))]


def one(name: str, lengths: list[int], **options: object) -> Plan:
    (only,) = make(name, np.array(lengths, np.int64), PackOptions(**options))
    return only

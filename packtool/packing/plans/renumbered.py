"""A plan of documents that were reordered before planning."""

from __future__ import annotations

from dataclasses import fields, replace

from packtool.plan import Ints, Plan, Segments


class RenumberedPlan(Plan):
    """The rows of another plan, whose documents have other numbers.

    Args:
        plan: of the documents in the order in which they were planned.
        order: the number of each of them.
    """

    def __init__(self, plan: Plan, order: Ints) -> None:
        super().__init__(**{field.name: getattr(plan, field.name) for field in fields(Plan)})
        self._plan = plan
        self._order = order

    def segments(self, units: Ints) -> Segments:
        part = self._plan.segments(units)
        stored = part.document >= 0
        document = part.document.copy()
        document[stored] = self._order[document[stored]]
        return replace(part, document=document)

"""A table as plain data: names, meanings and types of its columns, and its rows. `terminal` and `page` render it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column.

    Attributes:
        title: what it is called.
        of: what a row has in it: a number, words, or None where it is not known.
        write: from that to text.
        meaning: for a legend or tooltip; empty where the title says it.
        better: -1 where less is better, 1 where more is, 0 where neither.
        words: words and not figures, so aligned to the left.
        short: the title where room is scarce; empty for the title itself.
        brief: among the columns that a terminal shows unless everything is asked for.
    """

    title: str
    of: Callable[[Row], Any]
    write: Callable[[Any], str] = str
    meaning: str = ""
    better: int = 0
    words: bool = False
    short: str = ""
    brief: bool = True


@dataclass(frozen=True)
class Cell:
    """What one row has in one column.

    Attributes:
        text: as it is shown.
        value: to sort by; None to sort by the text.
        best: to be marked.
    """

    text: str
    value: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Table(Generic[Row]):
    """A table.

    Attributes:
        title: its heading; empty for none.
        columns: from left to right; the first names the rows.
        groups: rows under headings of their own; one group without a heading where there are none.
        contest: the rows of a group among which the best figure of a column is marked; None to mark none.
        notes: what a reader should know beside it.
        facts: rows are facts, each with its own meaning: name, value, meaning.
    """

    title: str
    columns: Sequence[Column[Row]]
    groups: Sequence[tuple[str, Sequence[Row]]]
    contest: Callable[[Sequence[Row]], Sequence[Row]] | None = None
    notes: Sequence[str] = ()
    facts: bool = False

    @property
    def headed(self) -> bool:
        """Whether its groups have headings."""
        return any(heading for heading, _ in self.groups)

    def cells(self, columns: Sequence[Column[Row]]) -> Iterator[tuple[str, list[list[Cell]]]]:
        """Yield the headings of the groups with the cells of their rows.

        >>> table = Table("", [Column("n", len), Column("word", str, words=True)], [("", ["a", "bb"])])
        >>> [[cell.text for cell in row] for _, rows in table.cells(table.columns) for row in rows]
        [['1', 'a'], ['2', 'bb']]
        """
        for heading, rows in self.groups:
            rivals = self.contest(rows) if self.contest else ()
            best = [_best(column, rivals) for column in columns]
            yield heading, [[_cell(c, row, b, rivals) for c, b in zip(columns, best, strict=True)] for row in rows]


def table_of(title: str, columns: Sequence[Column[Row]], rows: Sequence[Row], *notes: str) -> Table[Row]:
    """Make a table of one group without a heading."""
    return Table(title, columns, [("", rows)], notes=notes)


def _best(column: Column[Row], rivals: Sequence[Row]) -> float | None:
    """Find the best figure of a column; None if none is better or all are equal."""
    known = [value for value in map(column.of, rivals) if value is not None] if column.better else []
    if not known or min(known) == max(known):
        return None
    return float(min(known) if column.better < 0 else max(known))


def _cell(column: Column[Row], row: Row, best: float | None, rivals: Sequence[Row]) -> Cell:
    value = column.of(row)
    number = value if isinstance(value, int | float) else None
    wins = best is not None and value == best and any(row is rival for rival in rivals)
    return Cell(column.write(value), number, wins)

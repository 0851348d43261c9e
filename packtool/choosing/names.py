"""Find stores by name: any last part of a store's path that fits no other store."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.errors import UsageError
from packtool.options.kinds import shown
from packtool.options.names import any_of


class StoreNames:
    """The names that stores go by, however their paths were typed.

    Args:
        paths: of the stores, whole, or their URLs.

    >>> names = StoreNames(["/a/web", "/b/web", "/b/wiki"])
    >>> names.number("a/web", "--mix"), names.shortest
    (0, ['a/web', 'b/web', 'wiki'])
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._parts = [path.split("/") for path in paths]

    def number(self, name: str, where: str) -> int:
        """Return the number of the store that a name fits.

        Args:
            where: it stands, for messages.

        Raises:
            UsageError: it fits no store, or several.
        """
        fits = self._fitting(name.removeprefix("./").rstrip("/").split("/"))
        if len(fits) == 1:
            return fits[0]
        if fits:
            what = f"{shown(name)} is the name of {len(fits)} stores"
            remedy = f"name it {any_of(tuple(self.shortest[number] for number in fits))}"
        else:
            what = f"there is no store {shown(name)} among the inputs"
            remedy = f"name it as its path ends: {any_of(tuple(self.shortest))}"
        raise UsageError("store-name", what, remedy=remedy, where=where)

    @property
    def shortest(self) -> list[str]:
        """The shortest name of each store."""
        names = []
        for parts in self._parts:
            size = 1
            while size < len(parts) and len(self._fitting(parts[-size:])) > 1:
                size += 1
            names.append("/".join(parts[-size:]))
        return names

    def _fitting(self, ending: list[str]) -> list[int]:
        return [number for number, parts in enumerate(self._parts) if parts[-len(ending) :] == ending]

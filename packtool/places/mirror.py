"""Local directories of unfinished outputs whose files go to a store: what was sent can still be read."""

from __future__ import annotations

from pathlib import Path

from packtool.errors import names
from packtool.places import transfer

_mirrors: dict[str, Mirror] = {}


class Mirror:
    """A directory whose files are those of a dataset in a store, as far as they were needed.

    Args:
        url: of the dataset.
        path: of the directory, absolute; created.
        sizes: of every object below the URL, by name, if that is known.
    """

    def __init__(self, url: str, path: Path, sizes: dict[str, int] | None = None) -> None:
        self.url = url
        self.path = path
        self.sizes = transfer.names_below(url) if sizes is None else sizes
        path.mkdir(parents=True, exist_ok=True)
        names[str(path)] = url
        _mirrors[str(path)] = self

    def url_of(self, name: str) -> str:
        """Where a file comes from."""
        return f"{self.url}/{name}"

    def fetch(self, name: str) -> None:
        """Have a file here.

        Raises:
            FileNotFoundError: it is not in the store.
        """
        file = self.path / name
        if name not in self.sizes or ".." in Path(name).parts:
            raise FileNotFoundError(file)
        data = transfer.read(self.url_of(name))
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.fetched")
        partial.write_bytes(data)
        partial.replace(file)


def fetched(path: Path) -> bool:
    """Have a file here that lies in a mirror; False where it lies in none, or the store has none."""
    for parent in path.parents if _mirrors else ():
        if (mirror := _mirrors.get(str(parent))) is not None and not path.exists():
            try:
                mirror.fetch(path.relative_to(parent).as_posix())
            except FileNotFoundError:
                return False
            return True
    return False

"""Whole objects by their URLs, for those who know only these."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from packtool.places.store import StorePlace


def _at(url: str) -> tuple[StorePlace, str]:
    """The place that an object lies in, and its name there."""
    place, _, name = url.rpartition("/")
    return StorePlace(place), name


def upload(file: Path, url: str, stop: Event, xxh3_128: str | None = None) -> None:
    """Send a local file, as a whole or not at all; it stays here.

    Raises:
        DataError: the store refuses it; the file has changed.
        StoppedError: it was given up.
    """
    place, name = _at(url)
    place.send(name, file, xxh3_128, stop)


def write(url: str, data: bytes) -> None:
    """Make a small object."""
    place, name = _at(url)
    place.write(name, data)


def copy(source: str, target: str) -> None:
    """Have the store copy an object."""
    bucket = "/".join(source.split("/")[:3])
    StorePlace(bucket).copy(source.removeprefix(f"{bucket}/"), target.removeprefix(f"{bucket}/"))


def read(url: str) -> bytes:
    """Return all of an object.

    Raises:
        FileNotFoundError: there is none.
    """
    place, name = _at(url)
    return place.read(name)


def names_below(url: str) -> dict[str, int]:
    """Return every object below a URL, by its name relative to it, with its bytes."""
    return StorePlace(url).names()


def remove(url: str) -> None:
    """Remove an object; nothing happens where there is none."""
    place, name = _at(url)
    place.remove([name])


def remove_below(url: str) -> None:
    """Remove every object below a URL."""
    place = StorePlace(url)
    place.remove(place.names())

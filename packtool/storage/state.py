"""What lies at the place of an output, and which command wrote it with which options."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
import xxhash

from packtool.errors import PacktoolError
from packtool.places.local import PARTIAL
from packtool.places.place import Place
from packtool.storage import manifest as manifests
from packtool.storage.lock import LOCK
from packtool.storage.names import UNFINISHED
from packtool.storage.publish import STAGED, STATE
from packtool.storage.reading import decode
from packtool.storage.schema import listed

_BEFORE_STATE = re.compile(rf"{UNFINISHED}/({LOCK}|task-\d+\.lock|{STATE}(\.[0-9a-f]{{8}})?{re.escape(PARTIAL)})")
"""What a command may leave that was killed before it could write down its key."""


class State(msgspec.Struct, frozen=True):
    """Which command works here (or worked, in `run.json`), and the key of its options and inputs."""

    command: str
    key: str

    def same(self, other: State | None) -> bool:
        """Return whether another has this command and key."""
        return other is not None and (self.command, self.key) == (other.command, other.key)


class Begun(State, frozen=True):
    """The state, and how to go on.

    Attributes:
        arguments: of the command, as `packtool.options.arguments` has them.
        tasks: how many share it; 0 where one run does all of it.
        run: tells one run from another, in an object store.
    """

    arguments: dict[str, Any] = {}
    tasks: int = 0
    run: str = ""


@dataclass(frozen=True)
class Found:
    """The contents at the place of an output.

    Attributes:
        names: of every file there, with its bytes; none where a command was killed before it wrote down its key.
        whole: there is a manifest.
        finished: who wrote the dataset there; None where there is none, or that can't be told.
        unfinished: who is writing one, or was.
    """

    names: dict[str, int]
    whole: bool
    finished: State | None
    unfinished: Begun | None

    @property
    def replacing(self) -> bool:
        """Whether the new output lies beside an older dataset until it is whole."""
        return self.whole or any(name.startswith(f"{UNFINISHED}/{STAGED}/") for name in self.names)

    @property
    def state(self) -> State | None:
        """The command that worked there last, as far as it is known."""
        return self.unfinished or self.finished


def key_of(*parts: Any) -> str:
    """Hash options and inputs, which msgspec can write as JSON, into the key for `claim`."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(parts, order="deterministic"))


def look(place: Place) -> Found:
    """Look at the place of an output, without touching it."""
    names = place.names()
    if all(_BEFORE_STATE.fullmatch(name) for name in names):
        names = {}
    whole, begun = manifests.MANIFEST in names, f"{UNFINISHED}/{STATE}"
    return Found(
        names,
        whole,
        _read(place, manifests.RUN, State) if whole else None,
        _read(place, begun, Begun) if begun in names else None,
    )


def _read(place: Place, name: str, kind: type[Any]) -> Any:
    try:
        return decode(place.read(name), kind)
    except (OSError, ValueError, PacktoolError):
        return None


def lies_at(place: Place, command: str, key: str) -> str:
    """Classify the contents of a place, without touching it.

    Returns:
        ``nothing``; ``finished`` or ``unfinished`` work of this command with this key; ``other``: anything else.
    """
    try:
        contents, state = look(place), State(command, key)
        if state.same(contents.finished):
            place.require(list(listed(manifests.read(place))))
            return "finished"
    except (OSError, PacktoolError):
        return "other"
    if state.same(contents.unfinished):
        return "unfinished"
    return "other" if contents.names else "nothing"

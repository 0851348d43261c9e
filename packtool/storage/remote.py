"""What lies at the URL of a dataset, a directory that stands for it, and whether a run may write there.

Objects are replaced as a whole, a dataset of many can't be: a URL without a manifest is no dataset. While one is being
written there, ``unfinished/state.json`` says by whom, as in a directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packtool.errors import UsageError
from packtool.places import transfer
from packtool.places.mirror import Mirror
from packtool.places.staging import Upload
from packtool.storage import manifest as manifests
from packtool.storage.listing import listed
from packtool.storage.manifest import Manifest
from packtool.storage.publish import DATASET_FILE, STAGED, STATE, UNFINISHED, is_ours
from packtool.storage.reading import decode
from packtool.storage.state import State

_STATE = f"{UNFINISHED}/{STATE}"
_AGAIN = "give --overwrite to make it again, or choose another output"


@dataclass(frozen=True)
class Found:
    """What lies at the URL of an output.

    Attributes:
        names: every object there.
        finished: who wrote the dataset there; None where there is none.
        unfinished: who is writing one, or was.
    """

    names: dict[str, int]
    finished: State | None
    unfinished: State | None

    @property
    def replacing(self) -> bool:
        """Whether what is written there lies beside an older dataset until it is whole."""
        return self.finished is not None or any(name.startswith(f"{UNFINISHED}/{STAGED}/") for name in self.names)

    def work(self) -> dict[str, int]:
        """What lies in `unfinished/`, or would if there was no older dataset."""
        below = {n.removeprefix(f"{UNFINISHED}/"): b for n, b in self.names.items() if n.startswith(f"{UNFINISHED}/")}
        if self.replacing:
            return below
        return below | {f"{STAGED}/{n}": b for n, b in self.names.items() if not n.startswith(f"{UNFINISHED}/")}


def look(url: str) -> Found:
    """What lies at a URL."""
    names = transfer.names_below(url)
    finished = _state(url, manifests.RUN) if manifests.MANIFEST in names else None
    if finished is None and manifests.MANIFEST in names:
        finished = State("?", "")
    return Found(names, finished, _state(url, _STATE) if _STATE in names else None)


def _state(url: str, name: str) -> State | None:
    try:
        return decode(transfer.read(f"{url}/{name}"), State)
    except (FileNotFoundError, ValueError):
        return None


def stand_for(path: Path, upload: Upload) -> None:
    """Let a staging directory stand for the dataset that is finished at its URL."""
    made = Mirror(upload.url, path)
    for name in {manifests.MANIFEST, manifests.RUN, manifests.REPORT} & made.sizes.keys():
        made.fetch(name)
    tidy(upload.url, manifests.read(path))


def decide(upload: Upload, found: Found, state: State, *, overwrite: bool, resume: bool) -> bool:
    """Whether an output is finished there already; if not, a run may write it.

    Raises:
        UsageError: something else lies there.
    """
    if not found.names:
        return False
    other = found.unfinished or found.finished
    if resume:
        if found.finished == state:
            return True
        if other is None:
            raise UsageError(
                "nothing-to-resume",
                "not empty, and not the output of an interrupted run",
                remedy="give --overwrite, or another output",
                where=upload.url,
            )
        if other != state:
            same = other.command == state.command
            what = "begun with other options or inputs" if same else f"written by packtool {other.command}"
            remedy = "give the same ones, or --overwrite to start again" if same else _AGAIN
            raise UsageError("resume-differs", what, remedy=remedy, where=upload.url)
        return False
    if overwrite:
        _require_ours(upload.url, found)
        return False
    if found.finished is not None:
        what, remedy = "holds a finished dataset already", "give --overwrite to replace it"
    elif found.unfinished is not None:
        what = f"holds the unfinished work of an interrupted packtool {found.unfinished.command}"
        remedy = "give --resume to go on, --overwrite to start again"
    else:
        what, remedy = f"holds {min(found.names)} already", "choose another output, or move it away"
    raise UsageError("output-not-empty", what, remedy=remedy, where=upload.url)


def _require_ours(url: str, found: Found) -> None:
    """Refuse to write over, or beside, what packtool did not write.

    Raises:
        UsageError: naming an object.
    """
    for name in sorted(found.names):
        if not is_ours(name):
            what = f"holds {name}, which packtool did not write"
            remedy = "move it away, or choose another output"
            raise UsageError("output-has-other-files", what, remedy=remedy, where=url)


def lies_at(upload: Upload, state: State) -> str:
    """What lies at the URL of an output, as of `state_of`."""
    found = look(upload.url)
    if not found.names:
        return "nothing"
    if state in (found.finished, found.unfinished):
        return "finished" if found.finished == state else "unfinished"
    return "other"


def tidy(url: str, manifest: Manifest) -> None:
    """Remove what does not belong to the finished dataset: of the work on it, and of one that lay there before."""
    names = transfer.names_below(url)
    files = {each.name for each in listed(manifest)}
    for name in names.keys() - files - {manifests.RUN, manifests.MANIFEST}:
        if re.fullmatch(DATASET_FILE, name):
            transfer.remove(f"{url}/{name}")
    if any(name.startswith(f"{UNFINISHED}/") for name in names):
        transfer.remove_below(f"{url}/{UNFINISHED}")

"""Datasets in object stores: what lies at a URL, a directory that stands for it, and how a finished output gets there.

An output is made whole in its staging directory first. Then its files are uploaded, several at once, each visible only
when all of it is there; and the manifest last, so that a URL without one is no dataset. An object is replaced as a
whole, too, but a dataset of many can't be: so that nobody reads a mixture, the manifest of a dataset that
`--overwrite` replaces goes before the first new file comes. `unfinished.json` says meanwhile who is at work.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

import xxhash

from packtool.call import typed
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.places import staging, transfer
from packtool.places.mirror import Mirror
from packtool.places.staging import Upload
from packtool.progress import Progress
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes
from packtool.storage.listing import listed
from packtool.storage.publish import DATASET_FILE, STATE, UNFINISHED
from packtool.storage.reading import decode
from packtool.storage.state import Begun, State

UPLOADS = 4
"""Files that are uploaded at once."""
_STATE = "unfinished.json"
"""Says who is at work, as `unfinished/state.json` does in a directory."""
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


def mirror(url: str, root: Path, kind: str = "inputs", *, limit: int | None = None, quiet: bool = True) -> Mirror:
    """A directory that stands for what lies at a URL, with its manifest.

    Args:
        root, kind: where such directories lie, as of `directory_for`.
        limit, quiet: as of `Mirror`.

    Raises:
        DataError: nothing is there, or no dataset; the store refuses it.
    """
    try:
        manifest = transfer.read(f"{url}/{manifests.MANIFEST}")
    except FileNotFoundError:
        return _without_manifest(url, root)
    version = xxhash.xxh3_128_hexdigest(manifest)
    made = Mirror(url, staging.directory_for(url, root, kind, version), limit, quiet=quiet)
    if not (made.path / manifests.MANIFEST).exists():
        write_bytes(made.path / manifests.MANIFEST, manifest)
    found = manifests.read(made.path)
    made.expect({each.name: (each.bytes, each.xxh3_128) for each in listed(found)})
    return made


def _without_manifest(url: str, root: Path) -> Mirror:
    """A directory for what is not a dataset: it tells as much as a local one would."""
    made = Mirror(url, staging.directory_for(url, root, "inputs"))
    if not made.sizes:
        raise DataError("missing-input", "no such object or directory", remedy="check the URL", where=url)
    if _STATE not in made.sizes:
        what = f"no {manifests.MANIFEST}, so this is not a finished token store or packed dataset"
        remedy = "give the output of a packtool command; text files are tokenized first"
        raise DataError("no-manifest", what, remedy=remedy, where=url)
    made.expect({})
    made.fetch(_STATE)
    (made.path / UNFINISHED).mkdir(exist_ok=True)
    (made.path / _STATE).replace(made.path / UNFINISHED / STATE)
    return made


def stand_for(path: Path, upload: Upload) -> None:
    """Let a staging directory stand for the dataset that is finished at its URL."""
    made = Mirror(upload.url, path)
    made.fetch(manifests.MANIFEST)
    made.expect({each.name: (each.bytes, each.xxh3_128) for each in listed(manifests.read(path))})


def decide(upload: Upload, state: State, *, overwrite: bool, resume: bool) -> bool:
    """Whether an output is finished there already; if not, a run may write it.

    Raises:
        UsageError: something else lies there.
    """
    found = look(upload.url)
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
    ours = {_STATE, manifests.MANIFEST, manifests.RUN}
    for name in sorted(found.names):
        if name not in ours and not re.fullmatch(DATASET_FILE, name):
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


def begin(path: Path, upload: Upload, state: State, *, resume: bool) -> None:
    """Say at the URL who is at work. What an earlier run uploaded counts only where this one resumes it."""
    if not resume:
        staging.forget_uploaded(path)
    note = path.parent / STATE
    write_bytes(note, manifests.encode(Begun(state.command, state.key, typed())))
    try:
        transfer.upload(note, f"{upload.url}/{_STATE}", Event())
    finally:
        note.unlink()


def publish(path: Path, upload: Upload) -> None:
    """Upload a finished output, manifest last. Doing it again after it was interrupted does the rest.

    Raises:
        DataError: the store refuses it, or the local files are not whole.
    """
    url = upload.url
    there = transfer.names_below(url)
    files = {each.name: (each.bytes, each.xxh3_128) for each in listed(manifests.read(path))}
    done = {name for name, digest in staging.uploaded(path).items() if name in files and files[name][1] == digest}
    missing = [name for name, (size, _) in files.items() if name not in done or there.get(name) != size]
    if missing or manifests.MANIFEST not in there:
        if manifests.MANIFEST in there:
            transfer.remove(f"{url}/{manifests.MANIFEST}")
        _upload_all(path, upload, {name: files[name] for name in missing})
        for name in (manifests.RUN, manifests.MANIFEST):
            transfer.upload(path / name, f"{url}/{name}", Event())
    for name in there.keys() - files.keys() - {manifests.RUN, manifests.MANIFEST}:
        if re.fullmatch(DATASET_FILE, name):
            transfer.remove(f"{url}/{name}")
    transfer.remove(f"{url}/{_STATE}")


def _upload_all(path: Path, upload: Upload, files: dict[str, tuple[int, str]]) -> None:
    stop, noting = Event(), Lock()

    def one(name: str) -> int:
        transfer.upload(path / name, f"{upload.url}/{name}", stop)
        with noting:
            staging.note_uploaded(path, name, files[name][1])
        return files[name][0]

    with (
        Progress(sum(size for size, _ in files.values()), "upload", quiet=upload.quiet) as bar,
        ThreadPoolExecutor(UPLOADS) as pool,
    ):
        try:
            for each in as_completed([pool.submit(one, name) for name in files]):
                bar.advance(each.result())
        except BaseException as error:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, PacktoolError):
                raise _with_resume(error) from None
            raise


def _with_resume(error: PacktoolError) -> PacktoolError:
    """What is uploaded stays so."""
    remedy = f"{error.remedy.removesuffix(', then run the command again')}, then run the command again with --resume"
    return type(error)(error.code, error.what, remedy=remedy, where=error.where)

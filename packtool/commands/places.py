"""Commands on datasets in object stores: they get local directories that stand for URLs; their results name URLs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from packtool.commands.preview import Preview
from packtool.commands.staged import limit_inputs
from packtool.engines import available_cpus
from packtool.errors import UsageError, named
from packtool.places import staging, transfer
from packtool.places.mirror import Mirror
from packtool.places.quota import Quota
from packtool.places.url import as_typed, dataset_url, is_remote
from packtool.storage import manifest as manifests
from packtool.storage.publish import UNFINISHED
from packtool.storage.remote import look, mirror
from packtool.storage.state import State, read_state
from packtool.temporary import temporary_directory

Options = TypeVar("Options")
Result = TypeVar("Result")

READ_BYTES = 4 << 30
"""Arrays that a command keeps on disk that reads a dataset of a store and writes none, beside those it has open."""


def with_places(
    *reads: str, output: bool = False, corpus: str = "", ranged: str = ""
) -> Callable[[Callable[[Options], Result]], Callable[[Options], Result]]:
    """Let a command take URLs of datasets.

    Args:
        reads: its options that name datasets.
        output: it has the options `output` and `staging`, and what it reads lies in the staging directory, too.
        corpus: of `reads`, the option that may name text files instead, which the command reads where they are.
        ranged: of `reads`, the option whose tokens are read by ranges, without copies on local disks.
    """

    def decorate(command: Callable[[Options], Result]) -> Callable[[Options], Result]:
        @functools.wraps(command)
        def run(options: Options) -> Result:
            given: Any = options
            target = as_typed(given.output) if output else ""
            there = {name: _listed(getattr(given, name)) for name in reads}
            if not is_remote(target) and not any(is_remote(url) for urls in there.values() for url in urls):
                return command(options)
            if getattr(given, "task", None) is not None:
                raise UsageError(
                    "unsupported-store",
                    "tasks of one command share local directories, not those of an object store",
                    remedy="give directories on a shared file system, and copy the result",
                    where="--task",
                )
            with ExitStack() as stack:
                root = _root(given, stack) if output else stack.enter_context(temporary_directory())
                changed: dict[str, Any] = {}
                if is_remote(target):
                    target = dataset_url(target)
                    _refuse_overlap(target, [url for urls in there.values() for url in urls])
                    changed["output"] = staging.stage_output(target, root, quiet=given.quiet)
                mirrors: list[Mirror] = []
                for name, urls in there.items():
                    if not any(map(is_remote, urls)):
                        continue
                    kinds = ("tokens",) if name == ranged else ()
                    made = [_mirror(url, root, given, kinds, plain=name == corpus, keep=output) for url in urls]
                    mirrors += [each for each in made if each is not None]
                    local = [url if each is None else each.path for each, url in zip(made, urls, strict=True)]
                    many = isinstance(getattr(given, name), list | tuple)
                    changed[name] = local if many else local[0]
                if output:
                    used = [*([changed["output"]] if "output" in changed else []), *(each.path for each in mirrors)]
                    stack.push(lambda failed, *_: _clean(used, changed.get("output", given.output), failed))
                if hasattr(given, "staging_limit"):
                    workers = given.workers or available_cpus()
                    limit_inputs(mirrors, root, given.staging_limit, workers, shared=given.scheduler is not None)
                for each in mirrors if output else ():
                    each.recheck()
                result = command(replace(given, **changed))
            return cast("Result", told(result))

        return run

    return decorate


def _listed(value: Any) -> list[str]:
    if value is None:
        return []
    return [as_typed(each) for each in (value if isinstance(value, list | tuple) else [value])]


def _root(options: Any, stack: ExitStack) -> Path:
    """The staging directory: as given, else in the user's cache."""
    return staging.cache_directory() if options.staging is None else Path(options.staging)


def _mirror(url: str, root: Path, options: Any, ranged: Sequence[str], *, plain: bool, keep: bool) -> Mirror | None:
    """What stands for a dataset; None for what is not at a URL."""
    if not is_remote(url) or (plain and not _is_dataset(url)):
        return None
    quota, quiet = None if keep else Quota(READ_BYTES), getattr(options, "quiet", True)
    return mirror(dataset_url(url), root, quota=quota, quiet=quiet, ranged=ranged)


def _is_dataset(url: str) -> bool:
    try:
        return transfer.size_of(f"{dataset_url(url)}/{manifests.MANIFEST}") is not None
    except UsageError:
        return False  # a pattern, or a store of text files alone


def _refuse_overlap(target: str, inputs: Sequence[str]) -> None:
    for url in inputs:
        source = url.rstrip("/")
        if target == source or target.startswith(f"{source}/") or source.startswith(f"{target}/"):
            what = "the output is the input" if target == source else f"the output and the input {url} overlap"
            raise UsageError("output-overlaps-input", what, remedy="choose an output elsewhere", where=target)


def _clean(used: Sequence[Any], output: Path | str, failed: object) -> None:
    """Remove local files, but those that a resumed run would need."""
    if failed is not None and (Path(output) / UNFINISHED).exists():
        return
    for path in used:
        if failed is None or not (Path(path) / manifests.MANIFEST).exists() or path != output:
            staging.remove(Path(path))


@contextmanager
def opened(place: Path | str) -> Iterator[Path]:
    """The directory of a dataset, or one that stands for its URL meanwhile."""
    url = as_typed(place)
    if not is_remote(url):
        yield Path(place)
        return
    with temporary_directory() as root:
        yield mirror(dataset_url(url), root, quota=Quota(READ_BYTES)).path


def state_at(place: Path | str) -> State | None:
    """Which command works on an output, or worked; None if that can't be told, or nothing is there."""
    if not is_remote(as_typed(place)):
        return read_state(Path(place)) if Path(place).is_dir() else None
    found = look(dataset_url(as_typed(place)))
    return found.unfinished or found.finished


def is_occupied(place: Path | str) -> bool:
    """Whether something lies at an output."""
    if not is_remote(as_typed(place)):
        return Path(place).is_dir() and any(Path(place).iterdir())
    return bool(look(dataset_url(as_typed(place))).names)


def told(result: Any) -> Any:
    """A result in which directories that stand for URLs are called by these.

    >>> from packtool.errors import names
    >>> names["/cache/17/packed"] = "s3://bucket/packed"
    >>> told([Path("/cache/17/packed"), "packtool verify /cache/17/packed", 3]), names.clear()
    (['s3://bucket/packed', 'packtool verify s3://bucket/packed', 3], None)
    """
    out = result
    if isinstance(result, str):
        out = named(result)
    elif isinstance(result, Path) and named(str(result)) != str(result):
        out = named(str(result))
    elif isinstance(result, list):
        out = [told(each) for each in result]
    elif isinstance(result, dict):
        out = {key: told(value) for key, value in result.items()}
    elif isinstance(result, msgspec.Struct):
        out = msgspec.structs.replace(result, **dict(_changed(result, result.__struct_fields__)))
    elif is_dataclass(result) and not isinstance(result, type | Preview):  # a preview asks how much room there is
        out = replace(result, **dict(_changed(result, [field.name for field in fields(result)])))
    return out


def _changed(result: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        before = getattr(result, name)
        if (after := told(before)) is not before:
            yield name, after

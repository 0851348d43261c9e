"""Parse and format sizes as people write them."""

from __future__ import annotations

import os
import re
import shutil
from fractions import Fraction
from math import isnan
from pathlib import Path

from packtool.errors import UsageError

_LONGEST = 40  # characters of a refused size that are shown
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text: str | int, option: str = "--memory") -> int:
    """Parse bytes from a number with an optional unit: B, kB, MB, GB, TB, KiB, MiB, GiB or TiB.

    >>> parse_bytes("1GiB"), parse_bytes("1.5 MB"), parse_bytes(4096)
    (1073741824, 1500000, 4096)
    """
    match = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([kmgt]?i?)b?\s*", str(text).lower())
    size = 0
    if match is not None:
        size = int(Fraction(match[1]) * _UNITS.get(match[2], 0))
    if not size:
        shown = repr(text)
        if len(str(text)) > _LONGEST:
            shown = f"{str(text)[:_LONGEST]!r}…"
        raise UsageError("bad-size", f"{shown} is not a size", remedy="write it like 512MiB or 4GiB", where=option)
    return size


def machine_memory(process: Path = Path("/proc/self/cgroup"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory this process can use: the machine's, or the lowest limit of a control group.

    Containers, Slurm and systemd limit memory by control groups, of version 1 or 2; each limits those within it.

    Args:
        process: file that lists the groups of the process.
        groups: where they are. A container may see its own group at the top, whatever path the process has.
    """
    least = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = process.read_text().splitlines()
    except OSError:
        return least
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = top / path.lstrip("/")
        for parent in (group, *group.parents[: len(group.parts) - len(top.parts)]):
            try:
                limit = (parent / name).read_text().strip()
            except OSError:
                continue  # the top has none, and a container may not see its group's path
            if limit.isdecimal():  # else there is no limit: version 2 says "max"
                least = min(least, int(limit))
    return least


def memory_granted(given: str | int | None) -> int:
    """Return the bytes of memory that a command may use: as given, else half of the machine's."""
    if given is None:
        return machine_memory() // 2
    return parse_bytes(given)


def free_bytes(path: Path) -> int:
    """Return the free bytes on the disk of a file or directory, whether it exists yet or not."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def show_bytes(count: float) -> str:
    """Write a size for people, in decimal units.

    >>> show_bytes(1_234_567)
    '1.23 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def show_seconds(seconds: float) -> str:
    """Write a time as people read it.

    >>> show_seconds(0.04), show_seconds(75), show_seconds(5000), show_seconds(400000)
    ('1 s', '75 s', '83 min', '111.1 h')
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


def plural(count: int, unit: str) -> str:
    """Write a number of things, in the singular or the plural.

    >>> plural(1, "document"), plural(1725, "batch"), plural(0, "row")
    ('1 document', '1,725 batches', '0 rows')
    """
    if count != 1:  # also NaN, for a number that is not known
        unit += "es" if unit.endswith(("ch", "x", "s")) else "s"
    if isnan(count):
        return f"– {unit}"
    return f"{count:,} {unit}"

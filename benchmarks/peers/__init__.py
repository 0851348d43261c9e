"""Other tools, each in an environment of its own under `benchmarks/work/peers/`, made when first asked for.

    python -m benchmarks.peers trl olmo

`NAME.txt` lists what is installed, as for `pip install -r`. A line that ends with `# alone` is installed without its
dependencies: packing needs little of what a trainer asks for, and the lines below list it.
"""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
PLACE = HERE.parent / "work" / "peers"
PATIENCE = 900
"""Seconds in which pip has to be done."""


class NotInstallableError(Exception):
    """What pip said last, when a peer cannot be installed on this machine."""


def environment(name: str) -> Path:
    """The Python of a peer's environment.

    Raises:
        NotInstallableError: where pip finds or builds no such package; it is not tried again until its list changes.
    """
    place, listed = PLACE / name, HERE / f"{name}.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be making it
        return _made(name, place, listed.read_text())


def _made(name: str, place: Path, wanted: str) -> Path:
    python, done, failed = place / "bin" / "python", place / "installed", place / "failed"
    if done.exists() and done.read_text() == wanted:
        return python
    if failed.exists() and (reason := json.loads(failed.read_text()))["wanted"] == wanted:
        raise NotInstallableError(reason["said"])
    print(f"installing {name} into {place} (minutes, once)", file=sys.stderr)
    venv.create(place, with_pip=True, clear=True)
    lines = [line for line in wanted.splitlines() if line]
    alone = [line.partition("#")[0].strip() for line in lines if line.endswith("# alone")]
    rest = [line for line in lines if not line.endswith("# alone")]
    for packages in (["--no-deps", "--ignore-requires-python", *alone] if alone else [], rest):
        if packages and (said := _install([python, "-m", "pip", "install", "-q", *packages])):
            failed.write_text(json.dumps({"wanted": wanted, "said": said}))
            raise NotInstallableError(said)
    done.write_text(wanted)
    return python


def _install(command: list[str | Path]) -> str:
    """Why it failed, if it did: what was said by the tool that pip ran, if pip ran one."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"pip found no versions that go together in {PATIENCE} s"
    said = [line.strip(" │╰─>") for line in done.stderr.splitlines()]
    told = [line for line in said if line.lower().startswith(("error", "caused by", "failed", "no matching"))]
    reasons = [line for line in told if "subprocess" not in line]  # what pip says of a build that failed
    return re.sub(r" \(/.*?\)", "", (reasons or said or ["pip failed"])[0]) if done.returncode else ""


def versions(name: str) -> dict[str, str]:
    """What is installed in a peer's environment: package, version."""
    command = [environment(name), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return {package["name"]: package["version"] for package in json.loads(found)}

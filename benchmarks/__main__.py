"""Measure, make the page, compare commits.

python -m benchmarks run [NAME ...] [--quick | --full] [--no-peers] [--text DIRECTORY] [--out DIRECTORY]
python -m benchmarks page [--from DIRECTORY]
python -m benchmarks compare REF [NAME ...] [--rounds N] [--short]

A benchmark is a module with `cases`, in `NAMES` here and in the sections of `page.py`. A peer is `peers/NAME.txt`,
which lists what pip installs, and a function in a program beside it.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.common import RESULTS, WORK
from benchmarks.runner import Scale, run

NAMES = ("tokenize", "plan", "move", "load")
SCALES = {
    "quick": Scale("quick", rounds=1, limit=120),
    "bench": Scale("bench", rounds=3, limit=100),
    "full": Scale("full", rounds=5, limit=600),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("run", help="measure, and write one JSON file for each benchmark")
    measure.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=", ".join(NAMES))
    scale = measure.add_mutually_exclusive_group()
    scale.add_argument("--quick", action="store_const", const="quick", dest="scale", help="tiny sizes: does it run?")
    scale.add_argument("--full", action="store_const", const="full", dest="scale", help="larger sizes, more rounds")
    measure.add_argument("--text", type=Path, help="text files to tokenize instead of what is installed here")
    measure.add_argument("--no-peers", action="store_true", help="only what is installed beside packtool")
    measure.add_argument("--out", type=Path, help="where to write the JSON files")
    page = commands.add_parser("page", help="write docs/benchmarks.md from the JSON files")
    page.add_argument("--from", type=Path, default=RESULTS, dest="results")
    compare = commands.add_parser("compare", help="run this tree and a git reference in pairs")
    compare.add_argument("ref")
    compare.add_argument("--rounds", type=int, default=7)
    compare.add_argument("--short", action="store_true", help="smaller inputs")
    compare.add_argument("names", nargs="*")
    given = parser.parse_args()

    if given.command == "run":
        name = given.scale or "bench"
        chosen = replace(SCALES[name], text=given.text and given.text.resolve(), peers=not given.no_peers)
        results = given.out or (WORK / "quick" if name == "quick" else RESULTS)
        said = "python -m benchmarks " + " ".join(sys.argv[1:])
        for each in given.names or NAMES:
            print(f"\n== {each}\n", flush=True)
            run(each, chosen, results, command=said)
    elif given.command == "page":
        from benchmarks.page import write

        write(given.results)
    else:
        from benchmarks.compare import compare as paired

        paired(given.ref, given.rounds, short=given.short, names=given.names)


if __name__ == "__main__":
    main()

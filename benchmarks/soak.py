"""A soak: tokenize, pack, shuffle and verify ten gigabytes, and parts of them, with memory sampled all the way.

    python -m benchmarks.soak [--gigabytes 2 5 10] [--workers 2]

The corpus is files of a gigabyte: the documents of benchmarks.corpus in other orders, each with its file's number.
Every tenth of a second the memory of all processes of a command is added up, without that which maps files: the
system can take it back. A command's memory is flat where its peak is the same for every size; what it grows by is
given in bytes a document, from the smallest size to the largest.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.common import WORK, packtool, save, table
from benchmarks.corpus import generated, tokenizer

EVERY = 0.1


def files(gigabytes: int) -> Path:
    """A directory of so many files, kept from one run to the next."""
    directory = WORK / f"soak-{gigabytes}"
    if not directory.is_dir():
        first, _ = generated(1000)
        lines = first.read_text(encoding="utf-8").splitlines()
        made = directory.with_suffix(".part")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        for number in range(gigabytes):
            random.Random(number).shuffle(lines)
            with (made / f"{number:03d}.jsonl").open("w", encoding="utf-8") as file:
                for line in lines:
                    file.write(line.replace('"text": "', f'"text": "{number} ', 1) + "\n")
        made.rename(directory)
    return directory


def anonymous(pid: int) -> int:
    """Bytes of memory that map no file, of a process and all below it."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                total = int(line.split()[1]) << 10
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(anonymous(int(child)) for child in (task / "children").read_text().split())
    except (OSError, IndexError):
        pass  # it has just ended
    return total


def sampled(command: list[str]) -> tuple[float, list[int], str]:
    """Run a command; its seconds, samples of its memory, and what it printed."""
    begin, found = time.perf_counter(), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        ended = threading.Event()

        def sample() -> None:
            while not ended.wait(EVERY):
                found.append(anonymous(process.pid))

        thread = threading.Thread(target=sample)
        thread.start()
        assert process.stdout is not None
        output = process.stdout.read()
        status = process.wait()
        ended.set()
        thread.join()
    if status:
        raise SystemExit(f"failed with {status}: {' '.join(command)}")
    return time.perf_counter() - begin, found, output


def soak(corpus: list[Path], workers: str) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """What a corpus holds, and the seconds and the peak of each command on it."""
    store, packed, shuffled = (WORK / f"soak-{name}" for name in ("store", "packed", "shuffled"))
    plain = ["--workers", workers, "--overwrite", "--json", "-q"]
    stages = {
        "tokenize": packtool(
            "tokenize", *corpus, "-o", store, "--tokenizer", tokenizer("GPT-2's pattern, p50k")[0], *plain
        ),
        "pack": packtool("pack", store, "-o", packed, "--strategy", "bfd", "-L", "2048", *plain),
        "shuffle": packtool("shuffle", packed, "-o", shuffled, "--epoch", "1", "--memory", "1GiB", *plain),
        "verify": packtool("verify", shuffled, "--json", "-q"),
    }
    rows, counts = [], {}
    for name, command in stages.items():
        seconds, found, output = sampled(command)
        rows.append({"command": name, "seconds": seconds, "peak_mb": max(found, default=0) / 1e6})
        if name == "tokenize":
            counts = json.loads(output)["counts"]
    for path in (store, packed, shuffled):
        shutil.rmtree(path)
    return counts, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=int, nargs="+", default=[2, 5, 10])
    parser.add_argument("--workers", default="2")
    options = parser.parse_args()

    sizes = sorted(options.gigabytes)
    corpus = sorted(files(sizes[-1]).iterdir())
    soaks = [(size, *soak(corpus[:size], options.workers)) for size in sizes]
    documents = [counts["documents"] for _, counts, _ in soaks]
    rows = []
    for each in zip(*(rows for _, _, rows in soaks), strict=True):
        row = {"command": each[0]["command"]}
        for size, one in zip(sizes, each, strict=True):
            row |= {f"seconds_{size}_gb": one["seconds"], f"peak_mb_{size}_gb": one["peak_mb"]}
        grown = 1e6 * (each[-1]["peak_mb"] - each[0]["peak_mb"])
        row["bytes_a_document"] = grown / max(1, documents[-1] - documents[0])
        rows.append(row)
    table(list(rows[0]), [list(row.values()) for row in rows])
    save("soak", {"gigabytes": sizes, "counts": soaks[-1][1], "rows": rows})


if __name__ == "__main__":
    main()

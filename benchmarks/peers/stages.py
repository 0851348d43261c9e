"""Runs in packtool's environment: where the CPU time of `tokenize` with one worker goes, or that of planning.

PYTHON -m benchmarks.peers.stages tokenize TEXT.jsonl TOKENIZER.json EOS_TOKEN OUT
PYTHON -m benchmarks.peers.stages plan LENGTHS.npy SEQUENCE_LENGTH

A timer interrupts every few milliseconds of CPU time. What has passed since the last time belongs to the stage that is
then on the stack: Python code is interrupted where it stands, a call of a library when it returns. So nothing is
patched, and the whole of the process is accounted for.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from types import FrameType

EVERY = 0.002
"""CPU seconds between two looks."""
STAGES = {
    "importlib": "imports",
    "encoder_choice.load_encoder": "loading the encoder",
    "encoding.load": "reading the tokenizer",
    "encoders.reference_tokenizer": "loading the reference",
    "verify.Verified._compare": "checking the sample",
    "encoders.ReferenceEncoder": "checking the sample",
    "encoding.unicode": "looking for newer characters",
    "encoding.gigatoken": "encoding",
    "encoding.fastokens": "encoding",
    "encoding.long_texts": "cutting long texts",
    "packtool.text.corpus": "reading records",
    "tokenizing.counts": "counting special tokens",
    "tokenizing.store_writer": "writing shards",
    "formats.files": "writing shards",
    "formats.token_store": "writing shards",
    "outputs.output.Output.finish": "publishing",
    "tokenizing.job.finish": "publishing",
    "runs.sorted_by": "sorting groups of segments",
    "bins.mix._deal": "mixing: dealing groups",
    "bins.mix": "mixing: rows into segments and back",
    **dict.fromkeys(("runs.assign", "runs._", "runs.stable_order", "packing.plans"), "assigning documents"),
    **dict.fromkeys(("bins.greedy", "bins.filled", "bins.runs"), "filling bins"),
}
"""Beginnings of names of functions, as they end, and the stage that they are."""
WHOLE = ("imports", "loading the reference", "loading the encoder", "reading the tokenizer", "checking the sample")
"""Stages that all they call belongs to."""
REST = "all else"


def stage_of(names: list[str]) -> str:
    """The stage that a stack is in.

    Args:
        names: of its functions, with their modules, the innermost first.

    >>> stage_of(["packtool.formats.files.write", "packtool.text.tokenizing.store_writer.ShardWriter.add"])
    'writing shards'
    >>> stage_of(["packtool.text.encoding.gigatoken._load", "packtool.text.encoding.encoder_choice.load_encoder"])
    'loading the encoder'
    """
    found = [stage for name in names for part, stage in STAGES.items() if part in name]
    return next((stage for stage in WHOLE if stage in found), found[0] if found else REST)


def tokenize(text: str, tokenizer: str, eos: str, out: str) -> None:
    import packtool

    packtool.tokenize(text, out, tokenizer=tokenizer, eos_token=eos, workers=1, quiet=True, overwrite=True)


def plan(lengths: str, size: str) -> None:
    """Best fit, mixed."""
    import numpy as np

    from packtool.planning import packing

    packing.plan("bfd", np.load(lengths), packing.PackOptions(sequence_length=int(size)))


def main() -> None:
    spent: Counter[str] = Counter()
    last = 0.0

    def look(signum: int, frame: FrameType | None) -> None:
        nonlocal last
        del signum
        names = []
        while frame is not None:
            names.append(f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}")
            frame = frame.f_back
        now = time.process_time()
        spent[stage_of(names)] += now - last  # type: ignore[assignment]
        last = now

    what, *arguments = sys.argv[1:]
    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    {"tokenize": tokenize, "plan": plan}[what](*arguments)
    signal.setitimer(signal.ITIMER_PROF, 0)
    spent[REST] += time.process_time() - last  # type: ignore[assignment]
    print(json.dumps({f"stage {name}": round(seconds, 4) for name, seconds in spent.items()}))


if __name__ == "__main__":
    main()

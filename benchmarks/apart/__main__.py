"""What `check_apart` says of each kind of model beside a comparison of its own: python -m benchmarks.apart.

All tokens of the first document of each row are changed, in float32, without dropout; the logits of the second document
must stay the same, bit for bit. Of three forms of a batch: rows, rows with `cu_seq_lens_q`, and flat rows. The verdict
is that of `check_apart`, in training mode, in float32 and bfloat16.

With --kernels, stand-ins in plain PyTorch are imported where Transformers looks for causal_conv1d, mamba_ssm and fla;
with --flash, stand-ins attend in place of FlashAttention. No kernel of a GPU runs here.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from benchmarks.apart import flash, kinds
from packtool.errors import UsageError
from packtool.torch import check_apart, flat, with_cu_seq_lens

FORMS = {"rows": dict, "cu_seq_lens": with_cu_seq_lens, "flat": flat}


def changes(model: Any, batch: dict[str, Any], form: Any) -> tuple[float, float]:
    """Return how much logits of each second document change, and those of the documents that change, at most."""
    length = batch["input_ids"].shape[1]
    numbers = (batch["position_ids"] == 0).cumsum(1) - 1
    ids = batch["input_ids"]
    other = ids.where(numbers > 0, (ids + 77) % 7900 + 100)
    logits = []
    for each in (ids, other):
        inputs = form({**batch, "input_ids": each})
        del inputs["labels"]
        with torch.no_grad():
            logits.append(model(**inputs, use_cache=False).logits.reshape(len(ids), length, -1))
    change = (logits[0] - logits[1]).abs().amax(-1)
    return float(change[numbers == 1].max()), float(change[numbers == 0].max())


def verdict(model: Any, batch: dict[str, Any], form: Any) -> str:
    """Return what `check_apart` says."""
    try:
        assert check_apart(model.train(), form(batch), use_cache=False)
    except UsageError as error:
        if error.code != "documents-mixed":
            raise
        return error.what.removeprefix("documents of a row see each other").removeprefix(", by ") or "mixed"
    return "apart"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(kinds.KINDS))
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--flash", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--forms", nargs="+", default=["rows", "flat"], choices=FORMS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    if options.kernels:
        sys.path.insert(0, str(Path(__file__).parent / "kernels"))
    batch, wrong = kinds.make_batch(), 0
    for name in options.names:
        for form in options.forms:
            for dtype in (torch.float32, torch.bfloat16):
                try:
                    model = kinds.make_model(name, "eager" if options.flash else options.attention)
                    if options.flash:
                        flash.use(model)
                    change, own = changes(model.eval(), batch, FORMS[form])
                    said = verdict(model.to(dtype), batch, FORMS[form])
                except Exception as error:  # it is said, and the next kind tried
                    print(f"{name:20}{form:12}{dtype!s:16}does not run: {type(error).__name__}: {str(error)[:80]}")
                    continue
                right = (said == "apart") == (change == 0)
                wrong += not right
                note = "" if right else "   WRONG"
                print(f"{name:20}{form:12}{dtype!s:16}{change:<10.1e}of {own:<10.1e}{said}{note}", flush=True)
    print(f"{wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

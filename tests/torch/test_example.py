"""The example in examples/train learns from what every strategy packs, alone and on several processes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.planning.packing import STRATEGIES

pytestmark = [pytest.mark.torch, pytest.mark.slow]
torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "train"
SMALL = {"width": 32, "layers": 2, "heads": 2, "batch_tokens": 1024}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some docstrings of Python's own library, in 512 different tokens."""
    place = tmp_path_factory.mktemp("example")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        from stdlib_text import docstrings
        from train_tokenizer import train

        texts = [document.text for document in docstrings()][:800]
        (place / "tokenizer.json").write_text(train(texts, vocabulary=512))
    (place / "corpus.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    packtool.tokenize(place / "corpus.jsonl", place / "tokens", tokenizer=place / "tokenizer.json")
    return place / "tokens"


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example's function, on one thread."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    from train import train

    yield train
    torch.set_num_threads(threads)


@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_loss_falls(store: Path, tmp_path: Path, train: Any, strategy: str, masks: bool) -> None:
    several = {"buckets": (32, 64, 128)} if "buckets" in STRATEGIES[strategy].accepts else {}
    length = {} if several else {"sequence_length": 128}
    packtool.pack(store, tmp_path / "packed", strategy=strategy, holdout="5%", **several, **length)
    packtool.pack(store, tmp_path / "valid", strategy=strategy, holdout="5%", part="holdout", **several, **length)
    losses = train(tmp_path / "packed", valid=tmp_path / "valid", steps=30, masks=masks, **SMALL)
    assert len(losses) == 30
    assert losses[0] == pytest.approx(6.24, abs=0.2)  # what knowing nothing of 512 tokens costs
    assert sum(losses[-5:]) / 5 < 5.5


def test_it_goes_on_as_if_it_had_not_stopped(store: Path, tmp_path: Path, train: Any) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="bfd", sequence_length=128)
    whole = train(tmp_path / "packed", steps=12, **SMALL)
    parts = [train(tmp_path / "packed", steps=n, checkpoint=tmp_path / "run.pt", **SMALL) for n in (5, 12, 12)]
    assert [*parts[0], *parts[1]] == whole
    assert parts[2] == []


def test_it_goes_on_with_another_number_of_processes(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="bfd", sequence_length=128)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]

    def run(processes: int, steps: int, *more: str) -> float:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [sys.executable, *launcher, EXAMPLE / "train.py", tmp_path / "packed", f"--steps={steps}"]
        done = subprocess.run(
            [*map(str, command), *options, *more],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        (loss,) = re.findall(rf"step {steps}: loss ([\d.]+)", done.stdout)
        return float(loss)

    checkpoint = f"--checkpoint={tmp_path / 'run.pt'}"
    whole = run(1, 12)
    run(2, 5, checkpoint)
    assert run(4, 9, checkpoint) > whole
    assert run(1, 12, checkpoint) == pytest.approx(whole, abs=0.02)

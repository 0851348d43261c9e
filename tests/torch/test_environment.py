"""Loaders cost PyTorch and what reading costs: whatever else packtool is installed with can't be imported here."""

import subprocess
import sys
from pathlib import Path

import pytest

from packtool.support.installing import BEYOND_READING
from tests.making import Make

pytestmark = pytest.mark.torch

LOADING = """
import sys


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Missing())
from packtool.torch import Loader, ValidationLoader

for path in ("packed", "blend.toml"):
    loader = Loader(path, batch_size=4, num_workers=1)
    batches = list(loader)
    assert batches and batches[0]["input_ids"].shape == (4, 64)
    loader.load_state_dict(loader.state_dict())
assert len(list(ValidationLoader("packed", batch_size=2)))
assert not {names!r} & {{name.partition(".")[0] for name in sys.modules}}
"""


def test_loaders_blends_and_validation_need_pytorch_alone(make: Make, tmp_path: Path) -> None:
    make([5 + n % 40 for n in range(90)], at=tmp_path, packed={"strategy": "bfd", "sequence_length": 64})
    (tmp_path / "blend.toml").write_text('rows = 20\n[sources.a]\npath = "packed"\n')
    code = LOADING.format(names=set(BEYOND_READING))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

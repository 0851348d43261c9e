"""A strategy is one file and one line in the registry, as CONTRIBUTING says; the example there is the one added."""

import re
import shutil
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from packtool.errors import UsageError
from packtool.planning.packing import STRATEGIES, plan, strategy
from tests.test_laws import options_of

ROOT = Path(__file__).parents[3]


def test_a_strategy_that_is_not_there():
    with pytest.raises(UsageError, match=r"--strategy: there is no strategy 'tetris'\. Choose one of concat, padding"):
        strategy("tetris")


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_plan_is_frozen(name):
    for only in plan(name, np.array([5, 3, 20]), options_of(name, 8)):
        with pytest.raises(FrozenInstanceError):
            only.dropped = 1


@pytest.mark.parametrize("windowed", [True, False])
def test_a_strategy_is_added_as_contributing_says(tmp_path, windowed):
    example = re.search(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    code = example[1].replace("windowed=True", f"windowed={windowed}")
    assert f"windowed={windowed}" in code
    if not windowed:  # it is given arrays, and may ask them for its own
        code = code.replace("options: PackOptions)", "options: PackOptions, arrays: Arrays = IN_MEMORY)")
        code = code.replace(
            "numpy as np\n", "numpy as np\n\nfrom packtool.planning.arrays import IN_MEMORY, Arrays\n", 1
        )
    shutil.copytree(ROOT / "packtool", tmp_path / "packtool", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "packtool/planning/packing/apart.py").write_text(code, encoding="utf-8")
    registry = tmp_path / "packtool/options/names.py"
    lines = registry.read_text(encoding="utf-8").replace("STRATEGIES = (\n", 'STRATEGIES = (\n    "apart",\n')
    registry.write_text(lines, encoding="utf-8")
    for file in ("pyproject.toml", "tests/__init__.py", "tests/test_laws.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-k", "apart"]
    command += ["tests/test_laws.py", "packtool/planning/packing/apart.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"(\d+) passed", result.stdout)[1]) > 15
    program = (
        "import numpy as np; from packtool.planning.packing import PackOptions, plan; "
        "only, = plan('apart', np.array([3, 9, 2]), PackOptions(sequence_length=4, window_tokens=9)); "
        "rows = only.segments(np.array([4, 0, 2])); "
        "print(type(only).__name__, only.rows, rows.document.tolist(), rows.start.tolist())"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "RowsPlan 5 [2, 0, 1] [0, 0, 4]\n"

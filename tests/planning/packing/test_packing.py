"""A strategy is one file and one line in the registry, as CONTRIBUTING says; the example there is the one added."""

import re
import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from packtool.planning.packing import STRATEGIES, plan
from tests.added import copy_of, examples_of, replace, run
from tests.test_laws import options_of


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_plan_is_frozen(name):
    for only in plan(name, np.array([5, 3, 20]), options_of(name, 8)):
        with pytest.raises(FrozenInstanceError):
            only.dropped = 1


@pytest.mark.parametrize("windowed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_strategy_is_added_as_contributing_says(tmp_path, windowed):
    [example] = examples_of("Adding a strategy")
    code = example.replace("windowed=True", f"windowed={windowed}")
    assert f"windowed={windowed}" in code
    if not windowed:  # it is given arrays, and may ask them for its own
        code = code.replace("options: PackOptions)", "options: PackOptions, arrays: Arrays = IN_MEMORY)")
        code = code.replace(
            "numpy as np\n", "numpy as np\n\nfrom packtool.planning.arrays import IN_MEMORY, Arrays\n", 1
        )
    copied = ["packtool", "pyproject.toml", "tests/__init__.py", "tests/examples.py", "tests/test_laws.py"]
    copy_of(tmp_path, *copied)
    (tmp_path / "packtool/planning/packing/apart.py").write_text(code, encoding="utf-8")
    names = "StrategyName = Literal[\n"
    replace(tmp_path / "packtool/options/names.py", names, f'{names}    "apart",\n')
    command = ["pytest", "-v", "-p", "no:cacheprovider", "-k", "apart"]
    result = run(tmp_path, *command, "tests/test_laws.py", "packtool/planning/packing/apart.py")
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

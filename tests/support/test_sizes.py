"""Sizes: exact, and refused where they are not sizes, however long."""

from pathlib import Path

import pytest

from packtool.errors import UsageError
from packtool.support.sizes import machine_memory, parse_bytes


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("1.5kB", 1500), ("0.3GiB", 322122547), ("9007199254740993", 9007199254740993)]
)
def test_sizes_are_exact(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["9" * 400, "9" * 5000, "0", "0.1", "1e9", "-1", "1ii", "much", "inf"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(UsageError, match=r"memory: '.{1,40}'…? is not a size\. Write it like 512MiB") as caught:
        parse_bytes(text)
    assert caught.value.code == "bad-size"


def machine(root: Path, lines: str, limits: dict[str, str]) -> int:
    """Memory where control groups have these limits."""
    (root / "process").write_text(lines)
    for name, limit in limits.items():
        (root / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "groups" / name).write_text(f"{limit}\n")
    return machine_memory(root / "process", root / "groups")


@pytest.mark.parametrize(
    ("lines", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": "3000000"}, 3_000_000),  # a container
        ("0::/kubepods/pod1\n", {"memory.max": "3000000"}, 3_000_000),  # one that sees the path of its host
        ("0::/slurm/job/step\n", {"slurm/job/memory.max": "2000000", "slurm/job/step/memory.max": "max"}, 2_000_000),
        ("0::/a/b\n", {"a/memory.max": "1000000", "a/b/memory.max": "2000000"}, 1_000_000),
        ("0::/a\n", {"b/memory.max": "1000000"}, None),
        ("5:cpu:/a\n4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "4000000"}, 4_000_000),
        ("4:hugetlb,memory:/a\n0::/\n", {"memory/memory.limit_in_bytes": "4000000"}, 4_000_000),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}, None),  # no limit
        ("0::/\n", {"memory.max": "max"}, None),
    ],
)
def test_memory_is_the_least_limit_of_a_control_group(
    tmp_path: Path, lines: str, limits: dict[str, str], expected: int | None
) -> None:
    found = machine(tmp_path, lines, limits)
    whole = machine_memory(tmp_path / "no process")
    assert found == (expected or whole)
    assert whole > 5_000_000

"""docs/jobs.md counts lines as they stand on the page: those of packtool, and those of another tool."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "jobs.md").read_text(encoding="utf-8")
JOBS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]


def lines(job: str, language: str) -> int:
    [block] = re.findall(rf"^```{language}\n(.*?)^```$", job, re.MULTILINE | re.DOTALL)
    return len(block.splitlines())


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.partition("\n")[0])
def test_lines_are_counted(job: str) -> None:
    [said] = re.findall(r"^(\d+) lines?, there (\d+)\b", job, re.MULTILINE)
    ours, theirs = lines(job, "sh"), lines(job, "text")
    assert said == (str(ours), str(theirs))
    assert ours <= theirs

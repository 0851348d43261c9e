"""Dense code is counted, and named where it became denser."""

import subprocess
from pathlib import Path

import density
import pytest

DENSE = "a = [b if b else c for b in (d := e)]\n"


def test_the_package_is_within_its_limits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["density.py"])
    assert density.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize("kind", [*density.PER_THOUSAND_LINES, *density.IN_ALL])
def test_one_more_than_the_limit_is_too_much(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    most = {**density.PER_THOUSAND_LINES, **density.IN_ALL}[kind]
    for count, within in ((int(most), True), (int(most) + 1, False)):
        counts = dict.fromkeys(density.Density.of("").counts, 0) | {kind: count}
        assert density.report(density.Density(1000, counts)) == within
        assert f"{kind:24} {count:6.1f} " in capsys.readouterr().out


def test_a_file_that_became_denser_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(density, "ROOT", tmp_path)
    (tmp_path / "packtool").mkdir()
    texts = {"same": (DENSE, DENSE), "shorter": ("\n" + DENSE, DENSE), "denser": ("a = 1\n", DENSE)}
    for name, (before, _) in texts.items():
        (tmp_path / "packtool" / f"{name}.py").write_text(before)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    for name, (_, now) in texts.items():
        (tmp_path / "packtool" / f"{name}.py").write_text(now)
    kinds = ("conditional expressions", "comprehensions", "walruses")
    assert density.denser("HEAD") == [f"packtool/denser.py: {kind}: 0 in 1 lines, now 1 in 1" for kind in kinds]

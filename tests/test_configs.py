"""Every file in configs/ runs, and the experiments are the ones that the papers name."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.formats import manifest as manifests
from packtool.formats.schema import PackedManifest, StoreManifest

CONFIGS = Path(__file__).parents[1] / "configs"
WORDS = "the of and to in a is that for it as was with be by on not he his but at are this have from or"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 250 documents, from two words to more than the longest bucket, as JSON Lines and as lines of text."""
    place = tmp_path_factory.mktemp("corpus")
    draw = np.random.default_rng(7)
    lengths = [int(n) for n in draw.lognormal(4.5, 1.2, 240)] + [2, 3, 6_000, 13_000, 22_000]
    texts = [" ".join(draw.choice(WORDS.split(), max(2, n))) for n in lengths]
    (place / "corpus.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    (place / "corpus.txt").write_text("".join(f" = Title = \n\n {text}\n" for text in texts), encoding="utf-8")
    return place


def run(name: str, corpus: Path, output: Path) -> dict[str, PackedManifest]:
    """Run a configuration; the packed datasets it made, by name, all verified."""
    lines = 'format = "lines"' in (CONFIGS / name).read_text(encoding="utf-8")
    source = corpus / ("corpus.txt" if lines else "corpus.jsonl")
    results = packtool.run(CONFIGS / name, input=source, output=output, workers=1)
    assert {result.state for result in results} == {"done"}
    made = {}
    for result in results:
        if result.stage.output is not None:
            assert packtool.verify(result.stage.output).problems == []
            manifest = manifests.read(result.stage.output)
            if isinstance(manifest, PackedManifest):
                made[result.stage.output.name] = manifest
    return made


def store(output: Path) -> StoreManifest:
    return manifests.read(output / "tokens")


@pytest.mark.parametrize(
    ("name", "lengths"), [("atoms-gpt2.toml", (32, 64, 128)), ("atoms-gpt2-xl.toml", (256, 512, 1024))]
)
def test_atoms_of_a_quarter_to_four_rows(name: str, lengths: tuple[int, ...], corpus: Path, tmp_path: Path) -> None:
    made = run(name, corpus, tmp_path)
    atoms = [(length, length * quarters // 4) for length in lengths for quarters in (1, 2, 4, 8, 16)]
    wanted = {(s, length, a) for s in ("concat", "padding") for length, a in atoms if (length, a) != (128, 512)}
    assert {(m.strategy, m.options["sequence_length"], m.options["atom_size"]) for m in made.values()} == wanted
    names = {f"{strategy}-{length}-{atom}" for strategy, length, atom in wanted}
    assert set(made) == names | {f"{name}-epoch-1" for name in names}
    for name in names:
        first, second = made[name].shuffle, made[f"{name}-epoch-1"].shuffle
        assert (first.seed, first.epoch, second.seed, second.epoch) == (42, 0, 42, 1)
        assert made[name].ledger == made[f"{name}-epoch-1"].ledger
    counts = store(tmp_path).counts
    assert counts["filtered"] > 0, "rows under 50 characters, titles among them"
    for manifest in made.values():
        assert manifest.ledger.placed == counts["tokens"] - counts["documents"]


def test_the_test_split(corpus: Path, tmp_path: Path) -> None:
    made = run("atoms-gpt2-test.toml", corpus, tmp_path)
    lengths = (32, 64, 128, 256, 512, 1024)
    assert set(made) == {f"{strategy}-{length}" for strategy in ("concat", "padding") for length in lengths}
    assert all(manifest.shuffle is None for manifest in made.values())


def test_buckets(corpus: Path, tmp_path: Path) -> None:
    made = run("buckets.toml", corpus, tmp_path)
    fixed = {f"fixed-{length}" for length in (2048, 4096, 8192, 16384)}
    assert set(made) == fixed | {"multi-bucket", "algorithm-1", "batches"}
    assert {made[name].strategy for name in fixed} == {"concat"}
    assert made["algorithm-1"].ledger == made["batches"].ledger
    assert made["batches"].shuffle.batch_tokens == 2048 * 24 * 16 * 8
    assert (tmp_path / "report.html").exists()


def test_seamless(corpus: Path, tmp_path: Path) -> None:
    made = run("seamless.toml", corpus, tmp_path)
    assert set(made) == {
        f"{name}-{length}" for name in ("ct", "ffd", "bfd", "bfd-m", "sp") for length in (512, 1024, 2048)
    }
    for length, extra in ((512, 10), (1024, 50), (2048, 50)):
        assert made[f"sp-{length}"].strategy == "seamless"
        assert made[f"sp-{length}"].options["extra_capacity"] == extra
        assert made[f"bfd-m-{length}"].options["extra_capacity"] == extra
        assert made[f"sp-{length}"].options["max_repetition"] in ("3/10", "0.3")


def test_seamless_compares_what_it_packs() -> None:
    config = tomllib.loads((CONFIGS / "seamless.toml").read_text(encoding="utf-8"))
    packed = {stage["extra-capacity"] for stage in config["pack"] if "extra-capacity" in stage}
    assert config["stats"]["extra-capacity"] in packed


def test_partial_shuffle(corpus: Path, tmp_path: Path) -> None:
    made = run("partial-shuffle.toml", corpus, tmp_path)
    assert set(made) == {"epoch-0", "epoch-1", "epoch-2"}
    assert len({shard.tokens.xxh3_128 for each in made.values() for shard in each.buckets[0].shards}) == 3
    assert all(each.ledger.output % (20 * 70) == 0 for each in made.values())


def test_first_corpus(corpus: Path, tmp_path: Path) -> None:
    made = run("first-corpus.toml", corpus, tmp_path)
    assert set(made) == {"packed"}
    assert made["packed"].ledger.dropped == 0
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_experiment(corpus: Path, tmp_path: Path) -> None:
    """What examples/experiment trains on: its file stands for both sides of the corpus."""
    made = run("experiment.toml", corpus, tmp_path)
    atoms = {
        f"{s}-{length}-{length * n // 4}"
        for s in ("concat", "padding")
        for length in (32, 64)
        for n in (1, 2, 4, 8, 16)
    }
    others = "corpus-order bfd bfd-unmixed concat-index bfd-index first-fit-shuffle seamless buckets partial"
    assert set(made) == atoms | {f"{name}-64" for name in others.split()}
    assert made["corpus-order-64"].shuffle is None


def test_every_file_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [path.name for path in CONFIGS.iterdir() if f'"{path.name}"' not in source] == []

"""Every file in configs/ runs, and the experiments are the ones that the papers name."""

import tomllib
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.formats import manifest as manifests
from packtool.formats.schema import PackedManifest
from tests.making import write_records

CONFIGS = Path(__file__).parents[1] / "configs"
WORDS = "the of and to in a is that for it as was with be by on not he his but at are this have from or"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 250 documents, from two words to more than the longest bucket, as JSON Lines and as lines of text."""
    place = tmp_path_factory.mktemp("corpus")
    draw = np.random.default_rng(7)
    lengths = [int(n) for n in draw.lognormal(4.5, 1.2, 240)] + [2, 3, 6_000, 13_000, 22_000]
    texts = [" ".join(draw.choice(WORDS.split(), max(2, n))) for n in lengths]
    write_records(place / "corpus.jsonl", [{"text": text} for text in texts])
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
    counts = manifests.read(tmp_path / "tokens").counts
    assert counts["filtered"] > 0, "rows under 50 characters, titles among them"
    for manifest in made.values():
        assert manifest.ledger.placed == counts["tokens"] - counts["documents"]


def test_buckets(corpus: Path, tmp_path: Path) -> None:
    made = run("buckets.toml", corpus, tmp_path)
    fixed = {f"fixed-{length}" for length in (2048, 4096, 8192, 16384)}
    assert set(made) == fixed | {"multi-bucket", "algorithm-1", "batches"}
    assert {made[name].strategy for name in fixed} == {"concat"}
    assert made["algorithm-1"].ledger == made["batches"].ledger
    assert made["batches"].shuffle.batch_tokens == 2048 * 24 * 16 * 8
    assert (tmp_path / "report.html").exists()


def test_seamless(corpus: Path, tmp_path: Path) -> None:
    """It is compared as it is packed, too."""
    made = run("seamless.toml", corpus, tmp_path)
    extra = {512: 10, 1024: 50, 2048: 50}
    assert set(made) == {f"{name}-{length}" for name in ("ct", "ffd", "bfd", "bfd-m", "sp") for length in extra}
    for length, tokens in extra.items():
        assert made[f"sp-{length}"].strategy == "seamless"
        assert made[f"sp-{length}"].options["max_repetition"] in ("3/10", "0.3")
        assert made[f"sp-{length}"].options["extra_capacity"] == tokens
        assert made[f"bfd-m-{length}"].options["extra_capacity"] == tokens
    config = tomllib.loads((CONFIGS / "seamless.toml").read_text(encoding="utf-8"))
    assert config["stats"]["extra-capacity"] in extra.values()


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


SPLITS = {f"{strategy}-{length}" for strategy in ("concat", "padding") for length in (32, 64, 128, 256, 512, 1024)}
ATOMS = {
    f"{strategy}-{length}-{length * quarters // 4}"
    for strategy, length, quarters in product(("concat", "padding"), (32, 64), (1, 2, 4, 8, 16))
}
OTHERS = "corpus-order bfd bfd-unmixed concat-index bfd-index first-fit-shuffle seamless buckets partial"


@pytest.mark.parametrize(
    ("name", "wanted", "unshuffled"),
    [
        ("atoms-gpt2-test.toml", SPLITS, SPLITS),
        # What examples/experiment trains on: its file stands for both sides of the corpus.
        ("experiment.toml", ATOMS | {f"{name}-64" for name in OTHERS.split()}, {"corpus-order-64"}),
    ],
)
def test_what_is_trained_on(corpus: Path, tmp_path: Path, name: str, wanted: set[str], unshuffled: set[str]) -> None:
    made = run(name, corpus, tmp_path)
    assert set(made) == wanted
    assert {name for name, manifest in made.items() if manifest.shuffle is None} == unshuffled


def test_every_file_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [path.name for path in CONFIGS.iterdir() if f'"{path.name}"' not in source] == []
